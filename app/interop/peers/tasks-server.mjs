// A server of the extension io.modelcontextprotocol/tasks over Streamable HTTP, written from the text of
// the specification (modelcontextprotocol/ext-tasks, and 2026-07-28 for the rest) with Node.js alone: no
// SDK, and nothing of Parley. The official suite passes it: see README.md.
//
//   node tasks-server.mjs [PORT]
//
// Its tools are those that the suite wants of a server with tasks. It prints its URL as JSON, and ends
// when its standard input does; with a port it goes on.

import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';

import { listen } from './serving.mjs';

const ext = 'io.modelcontextprotocol/tasks';
const version = '2026-07-28';
const meta = (name) => `io.modelcontextprotocol/${name}`;

// A Fault is an error of JSON-RPC, with the status of HTTP.
class Fault extends Error {
  constructor(code, message, { data, status = 200 } = {}) {
    super(message);
    Object.assign(this, { code, data, status });
  }
}

const missing = (requiredCapabilities) =>
  new Fault(-32021, 'missing required client capability', { data: { requiredCapabilities }, status: 400 });

// Tasks by identifier, and the streams that listen to each.
const tasks = new Map();
const listeners = new Map();

class Task {
  status = 'working';
  createdAt = new Date().toISOString();
  lastUpdatedAt = this.createdAt;
  id = randomBytes(16).toString('hex');
  open = new Map(); // questions by key, and what takes the answer of each
  abort = new AbortController();

  constructor(run) {
    tasks.set(this.id, this);
    run(this).then(
      (result) => this.end('completed', '', { result }),
      (err) => {
        if (err instanceof Fault) this.end('failed', err.message, { error: { code: err.code, message: err.message } });
        else this.end('cancelled', 'cancelled by the client', {});
      },
    );
  }

  base() {
    const { id: taskId, status, statusMessage, createdAt, lastUpdatedAt } = this;
    return { taskId, status, ...(statusMessage && { statusMessage }), createdAt, lastUpdatedAt, ttlMs: 3_600_000, pollIntervalMs: 200 };
  }

  detailed() {
    const inputRequests = Object.fromEntries([...this.open].map(([key, q]) => [key, q.request]));
    return { ...this.base(), ...(this.status === 'input_required' && { inputRequests }), ...this.outcome };
  }

  change(members) {
    if (this.outcome) return; // it has ended
    Object.assign(this, members, { lastUpdatedAt: new Date().toISOString() });
    for (const tell of listeners.get(this.id) ?? []) tell(this);
  }

  end(status, statusMessage, outcome) {
    if (!this.outcome) this.open.clear();
    this.change({ status, statusMessage, outcome });
  }

  sleep(ms) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      const stop = () => {
        clearTimeout(timer);
        reject(this.abort.signal.reason);
      };
      this.abort.signal.addEventListener('abort', stop, { once: true });
    });
  }

  ask(key, request) {
    return new Promise((resolve, reject) => {
      this.open.set(key, { request, resolve });
      this.change({ status: 'input_required' });
      this.abort.signal.addEventListener('abort', () => reject(this.abort.signal.reason), { once: true });
    });
  }

  answer(responses) {
    for (const [key, response] of Object.entries(responses)) {
      const question = this.open.get(key);
      if (!question) continue; // "a server SHOULD ignore" what is not outstanding
      this.open.delete(key);
      question.resolve(response);
      this.change({ status: this.open.size > 0 ? 'input_required' : 'working' });
    }
  }
}

const text = (s, more = {}) => ({ content: [{ type: 'text', text: s }], ...more });
const form = (message, type, name) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: { type: 'object', properties: { [name]: { type } }, required: [name] } },
});
const given = (response, name) => (response?.action === 'accept' ? response.content?.[name] : undefined);

// Tools: task "may" gives a plain result to clients without tasks, "must" refuses them.
const tools = {
  greet: { input: { name: 'string' }, plain: async ({ name }) => text(`Hello, ${name}!`) },
  slow_compute: {
    task: 'may',
    input: { seconds: 'number', label: 'string' },
    async run(task, { seconds = 0, label = '' }) {
      task?.change({ statusMessage: `computing for ${seconds} s` });
      await (task ? task.sleep(seconds * 1000) : new Promise((resolve) => setTimeout(resolve, seconds * 1000)));
      return text(`computed ${label}`);
    },
  },
  failing_job: {
    task: 'must',
    async run(task) {
      await task.sleep(1000);
      return text('the job failed', { isError: true });
    },
  },
  protocol_error_job: {
    task: 'must',
    async run(task) {
      await task.sleep(100);
      throw new Fault(-32603, 'the job broke');
    },
  },
  confirm_delete: {
    task: 'must',
    input: { filename: 'string' },
    async run(task, { filename }) {
      const sure = given(await task.ask('confirm', form(`Delete ${filename}?`, 'boolean', 'confirm')), 'confirm');
      return text(sure ? `deleted ${filename}` : `kept ${filename}`);
    },
  },
  multi_input: {
    task: 'must',
    async run(task) {
      const [name, sure] = await Promise.all([
        task.ask('name', form('Your name?', 'string', 'name')),
        task.ask('confirm', form('Go on?', 'boolean', 'confirm')),
      ]);
      return text(`${given(name, 'name')} ${given(sure, 'confirm')}`);
    },
  },
  test_tool_with_task: {
    task: 'must',
    first: { user_name: form('What is your name?', 'string', 'name') }, // asked before there is a task
    async run(task, _args, answers) {
      await task.sleep(200);
      return text(`Hello, ${given(answers.user_name, 'name')}!`);
    },
  },
};

async function call(params, can) {
  const tool = Object.hasOwn(tools, params.name) ? tools[params.name] : undefined;
  if (!tool) throw new Fault(-32602, `no such tool: ${params.name}`);
  const args = params.arguments ?? {};
  if (tool.plain) return tool.plain(args);
  if (!can.extensions?.[ext]) {
    if (tool.task === 'must') throw missing({ extensions: { [ext]: {} } });
    return tool.run(undefined, args);
  }
  if (tool.first && !params.inputResponses) {
    if (!can.elicitation) throw missing({ elicitation: {} });
    return { resultType: 'input_required', inputRequests: tool.first, requestState: 'asked' };
  }
  const task = new Task((own) => tool.run(own, args, params.inputResponses));
  return { resultType: 'task', ...task.base() };
}

const acknowledge = {
  'tasks/get': (task) => task.detailed(),
  'tasks/update': (task, params) => void task.answer(params.inputResponses),
  'tasks/cancel': (task) => void task.abort.abort(new Error('cancelled')),
};

async function answer({ method, params }, can) {
  if (Object.hasOwn(acknowledge, method)) {
    if (!can.extensions?.[ext]) throw missing({ extensions: { [ext]: {} } });
    const task = tasks.get(params.taskId);
    if (!task) throw new Fault(-32602, 'no such task');
    return acknowledge[method](task, params) ?? {};
  }
  const fresh = { ttlMs: 0, cacheScope: 'private' };
  switch (method) {
    case 'server/discover':
      return { ...fresh, supportedVersions: [version], capabilities: { tools: {}, extensions: { [ext]: {} } } };
    case 'tools/list': {
      const list = Object.entries(tools).map(([name, { input = {} }]) => ({
        name,
        inputSchema: { type: 'object', properties: Object.fromEntries(Object.entries(input).map(([n, type]) => [n, { type }])) },
      }));
      return { ...fresh, tools: list };
    }
    case 'tools/call':
      return call(params, can);
  }
  throw new Fault(-32601, `no such method: ${method}`, { status: 404 });
}

// check compares the header fields with the body (basic/transports/streamable-http).
function check(request, { method, params }) {
  const refuse = (what) => {
    throw new Fault(-32020, `${what} is not what the body says`, { status: 400 });
  };
  if (request.headers['mcp-method'] !== method) refuse('Mcp-Method');
  const name = { 'tools/call': params.name }[method] ?? (Object.hasOwn(acknowledge, method) ? params.taskId : undefined);
  const said = request.headers['mcp-name']?.replace(/^=\?base64\?(.*)\?=$/, (_, coded) => Buffer.from(coded, 'base64').toString());
  if (name !== undefined && said !== name) refuse('Mcp-Name');
  const own = params._meta?.[meta('protocolVersion')];
  const can = params._meta?.[meta('clientCapabilities')];
  if (own === undefined || can === undefined) throw new Fault(-32602, '_meta has no revision or no capabilities', { status: 400 });
  if (own !== version) throw new Fault(-32022, 'unsupported revision', { data: { supported: [version], requested: own }, status: 400 });
  if (request.headers['mcp-protocol-version'] !== own) refuse('MCP-Protocol-Version');
  return can;
}

// follow holds a subscription open until the client goes.
function follow(id, params, response) {
  const send = (message) => response.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
  const own = { [meta('subscriptionId')]: id };
  const wanted = params.notifications?.taskIds?.filter((one) => tasks.has(one));
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  send({ method: 'notifications/subscriptions/acknowledged', params: { _meta: own, notifications: wanted ? { taskIds: wanted } : {} } });
  const tell = (task) => send({ method: 'notifications/tasks', params: { ...task.detailed(), _meta: own } });
  for (const one of wanted ?? []) listeners.set(one, (listeners.get(one) ?? new Set()).add(tell));
  response.on('close', () => wanted?.forEach((one) => listeners.get(one).delete(tell)));
}

async function serve(request, response) {
  if (request.method !== 'POST') return response.writeHead(405).end();
  let body = '';
  for await (const part of request) body += part;
  let message = { id: null };
  const reply = (status, members) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, ...members }));
  };
  try {
    message = { params: {}, ...JSON.parse(body) };
    if (message.id === undefined) return response.writeHead(202).end();
    const can = check(request, message);
    if (message.method === 'subscriptions/listen') {
      if (message.params.notifications?.taskIds && !can.extensions?.[ext]) throw missing({ extensions: { [ext]: {} } });
      return follow(message.id, message.params, response);
    }
    const info = { [meta('serverInfo')]: { name: 'tasks-from-text', version: '1.0.0' } };
    return reply(200, { result: { resultType: 'complete', ...(await answer(message, can)), _meta: info } });
  } catch (err) {
    const fault = err instanceof Fault ? err : new Fault(err instanceof SyntaxError ? -32700 : -32603, String(err));
    return reply(fault.status, { error: { code: fault.code, message: fault.message, ...(fault.data && { data: fault.data }) } });
  }
}

const http = createServer(serve);
if (process.argv[2]) http.listen(Number(process.argv[2]), '127.0.0.1');
else listen(http);
