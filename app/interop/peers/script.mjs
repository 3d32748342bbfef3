// What every pair of client and server goes through, as package script says it:
// the names of what servers offer, and the steps of a client. A client prints
// what it saw as JSON, one line for each step; together they are a Report.

export const server = { name: 'interop', version: '1.0.0' };
export const uris = {
  greeting: 'test://greeting',
  counter: 'test://counter',
  items: 'test://items/{id}',
  item: 'test://items/7',
  missing: 'test://missing',
};
export const texts = { greeting: 'hello, world', counter: '0', item: 'item ' };
export const fillers = ['filler-1', 'filler-2', 'filler-3'];
export const questions = { who: 'Who are you?', team: 'Which team?' };
export const prompt = 'Say hi.';
export const schema = { type: 'object', properties: { answer: { type: 'string' } }, required: ['answer'] };

export const review = (language) => `Review this ${language} code.`;
export const hello = (who, team) => `hello, ${who} of ${team}`;
export const complete = (typed) => ['c', 'go', 'groovy', 'java'].filter((l) => l.startsWith(typed));
export const say = (text) => ({ content: [{ type: 'text', text }] });
export const text = (content) => (Array.isArray(content) ? content[0] : content)?.text ?? '';

const answers = { [questions.who]: 'Ada', [questions.team]: 'Blue' };
const stepCount = 5;
const patience = 20_000; // milliseconds for each step

// Peer is one client's side of the script: what its handlers saw, and what it
// is waiting for.
export class Peer {
  questions = [];
  sampled = '';
  // What came over the wire, whatever the SDK made of it: values of progress,
  // and the code of the last error.
  progress = [];
  code = 0;
  #waiting = new Map();
  #come = new Map();

  // tap listens to what a connected transport gives to its client.
  tap(transport) {
    const pass = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (message.method === 'notifications/progress') this.progress.push(message.params.progress);
      if (message.error) this.code = message.error.code;
      return pass.call(transport, message, extra);
    };
  }

  // elicit and sample answer what the server asks.
  elicit(params) {
    this.questions.push(params.message);
    return { action: 'accept', content: { answer: answers[params.message] } };
  }

  sample(params) {
    this.sampled = text(params.messages[0]?.content);
    return { model: 'test-model', role: 'assistant', content: { type: 'text', text: 'hi' }, stopReason: 'endTurn' };
  }

  // happened notes a notification, come waits for one.
  happened(name, value) {
    this.#come.set(name, value);
    this.#waiting.get(name)?.(value);
  }

  come(name) {
    if (this.#come.has(name)) return this.#come.get(name);
    return new Promise((resolve) => this.#waiting.set(name, resolve));
  }
}

const print = (part) => process.stdout.write(JSON.stringify(part) + '\n');

function limited(promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// run goes through the script. The client has call(name, args, options), list(),
// read(uri), prompt(name, args), complete(name, argument), subscribe(uri), close().
export async function run(client, peer, version, skip = []) {
  const errors = [];
  const step = async (name, fn) => {
    if (skip.includes(name)) return;
    try {
      print((await limited(fn())) ?? {});
    } catch (err) {
      errors.push(`${name}: ${err.message}`);
    }
  };
  print({ version, server: client.server() });
  await step('tools', async () => ({ tools: (await client.list()).sort() }));
  await step('calls', () => calls(client));
  await step('progress', async () => {
    const seen = [];
    await client.call('steps', { count: stepCount }, { onprogress: (p) => seen.push(p.progress) });
    // The SDKs drop progress that they read together with the answer.
    if (seen.some((p, i) => p !== i + 1)) throw new Error(`the client saw ${seen}`);
    return { progress: peer.progress };
  });
  await step('resources', () => resources(client, peer));
  await step('prompt', async () => ({
    prompt: await client.prompt('review', { language: 'go' }),
    completion: await client.complete('review', { name: 'language', value: 'g' }),
  }));
  await step('questions', async () => {
    const said = text((await client.call('ask-person', {})).content);
    return { hello: said, questions: peer.questions.sort() };
  });
  await step('model', async () => {
    const said = text((await client.call('ask-model', {})).content);
    return { model: said, sampled: peer.sampled };
  });
  await step('subscribe', async () => {
    await client.subscribe(uris.counter);
    await client.call('touch', {});
    return { updated: await peer.come('updated') };
  });
  await step('grow', async () => {
    await client.call('grow', {});
    await peer.come('grown');
    return { grown: (await client.list()).find((name) => name === 'grown') ?? '' };
  });
  await step('cancel', () => cancel(client));
  await step('close', () => client.close());
  print({ errors });
}

async function calls(client) {
  const echo = text((await client.call('echo', { message: 'héllo 世界' })).content);
  const sum = (await client.call('add', { a: 2, b: 3 })).structuredContent?.sum ?? 0;
  const failed = await client.call('fail', { reason: 'too late' });
  if (!failed.isError) throw new Error('fail: no error');
  return { echo, sum, failure: text(failed.content) };
}

async function resources(client, peer) {
  const greeting = await client.read(uris.greeting);
  const item = await client.read(uris.item);
  const refused = await client.read(uris.missing).then(
    () => false,
    () => true,
  );
  if (!refused) throw new Error('missing: no error');
  return { greeting, item, missing: peer.code };
}

// cancel cancels a call once it is under way, and asks whether the server
// noticed.
async function cancel(client) {
  const abort = new AbortController();
  const hanging = client.call('hang', {}, { signal: abort.signal, onprogress: () => abort.abort() });
  await hanging.then(
    () => {
      throw new Error('hang: no error');
    },
    (err) => {
      if (!abort.signal.aborted) throw err;
    },
  );
  return { stopped: text((await client.call('stopped', {})).content) };
}

// connect connects, or prints why not and ends the process.
export async function connect(client, transport) {
  try {
    await client.connect(transport);
  } catch (err) {
    print({ errors: [`connect: ${err.message}`] });
    process.exit(0);
  }
}

// arguments of a client script: JSON with url or command, and more.
export const options = () => JSON.parse(process.argv[2]);
