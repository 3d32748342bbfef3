// The client for tasks of @modelcontextprotocol/ext-tasks, over the client of the TypeScript SDK, version 2.
// It calls the tools of the server that tasks_clients_test.go starts, and prints what it saw as JSON.
//
//   node ext-tasks-client.mjs URL modern|legacy poll|notify

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';

const [url, era, mode] = process.argv.slice(2);
const modern = era === 'modern';
const protocolVersion = modern ? '2026-07-28' : '2025-11-25';
const clientInfo = { name: 'ext-tasks', version: '0.2.2' };
const clientCapabilities = { elicitation: {}, ...(modern && { extensions: { 'io.modelcontextprotocol/tasks': {} } }) };

const client = new Client(clientInfo, {
  capabilities: clientCapabilities,
  versionNegotiation: { mode: modern ? { pin: protocolVersion } : 'legacy' },
});
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);

// The SDK refuses messages of tasks in 2026-07-28; ext-tasks has its host send those.
let id = 0;
async function rawDispatch(request, { signal, context } = {}) {
  const { method, params } = request;
  const response = await fetch(url, {
    method: 'POST',
    signal,
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': protocolVersion,
      'Mcp-Method': method,
      'Mcp-Name': params.name ?? params.taskId,
      ...context?.headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: `raw-${++id}`, ...request }),
  });
  const body = await response.text();
  const events = response.headers.get('Content-Type')?.startsWith('text/event-stream')
    ? body.split('\n').filter((line) => line.startsWith('data: ')).map((line) => line.slice(6))
    : [body];
  const answer = events.map((event) => JSON.parse(event)).find((message) => 'result' in message || 'error' in message);
  return answer.error ? { kind: 'error', error: answer.error } : { kind: 'result', result: answer.result };
}

const report = { version: client.getNegotiatedProtocolVersion(), capabilities: {}, notified: 0, errors: [], listed: [], calls: {} };
client.fallbackNotificationHandler = async ({ method }) => {
  if (method.startsWith('notifications/tasks')) report.notified++;
};

let asked = [];
const answers = { region: { region: 'north' }, confirm: { confirm: true }, left: { left: 'L' }, right: { right: 'R' } };
const open = () =>
  createTaskSessionFromClient(client, {
    endpointId: 'parley',
    ...(modern && { rawDispatch, v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities } }),
    onInputRequest: async ({ kind, params }, { scope, delivery }) => {
      asked.push(`${params.message} ${kind} ${scope} ${delivery}`);
      return { action: 'accept', content: answers[Object.keys(params.requestedSchema.properties)[0]] };
    },
    onError: (e) => report.errors.push(String(e)),
  });
let session = open();
report.capabilities = session.capabilities;

// In 2025-11-25 questions come to a client that waits in tasks/result. ext-tasks sends that at the end alone,
// so its host does while there are questions.
const any = { '~standard': { version: 1, vendor: 'interop', validate: (value) => ({ value }) } };
const results = new Map();
function onEvent({ type, task }) {
  if (modern || type !== 'task' || task.status !== 'input_required' || results.has(task.taskId)) return;
  results.set(task.taskId, client.request({ method: 'tasks/result', params: { taskId: task.taskId } }, any));
}

// A client must ask once after the acknowledgement of a subscription, since what changed before it is not
// notified; ext-tasks leaves that to its host as well.
// In 2025-11-25 it is the client that asks for a task.
const how = modern ? {} : { task: { preference: 'prefer' } };

async function listen(execution) {
  if (!modern || mode !== 'notify' || execution.kind !== 'task') return undefined;
  const subscription = await client.listen({ taskIds: [execution.handle.taskId] });
  const { raw } = await session.task(execution.handle.taskId).snapshot();
  await client.fallbackNotificationHandler({ jsonrpc: '2.0', method: 'notifications/tasks', params: raw });
  return subscription;
}

async function settle(execution) {
  const subscription = await listen(execution);
  const states = [];
  const { outcome } = await execution.settle({
    onEvent(event) {
      if (event.type === 'task' && event.task.status !== states.at(-1)) states.push(event.task.status);
      onEvent(event);
    },
  });
  await subscription?.close();
  const { result, error } = outcome;
  return {
    kind: execution.kind,
    status: outcome.status,
    asks: states.includes('input_required'),
    text: result?.content?.[0]?.text ?? error?.message ?? '',
    isError: result?.isError ?? false,
    code: error?.code ?? 0,
    data: error?.data ?? null,
    asked,
  };
}

// call notes what comes of a call.
async function call(name, run) {
  asked = [];
  try {
    report.calls[name] = await run();
  } catch (e) {
    report.calls[name] = { status: 'thrown', text: e.message, code: e.code ?? 0, data: e.data ?? null, asked };
  }
}

for (const tool of ['plain', 'deploy', 'pair', 'refuse', 'break', 'must']) {
  await call(tool, async () => settle(await session.callTool(tool, {}, how)));
}
let last;
await call('wait', async () => {
  const execution = await session.callTool('wait', {}, how);
  last = session.task(execution.handle.taskId);
  while (!(await last.snapshot()).statusMessage?.startsWith('waiting')) await new Promise((resolve) => setTimeout(resolve, 20));
  await execution.cancel();
  return settle(execution);
});
await call('cancel again', async () => {
  await last.cancel();
  return { status: (await last.snapshot()).status, asked };
});
await call('unknown', async () => ({ status: (await session.task('00000000-0000-4000-8000-000000000000').snapshot()).status, asked }));
// A session hands a task over while a question is open, and another one takes it up.
await call('resumed', async () => {
  const execution = await session.callTool('deploy', {}, how);
  while ((await session.task(execution.handle.taskId).snapshot()).status !== 'input_required') await new Promise((resolve) => setTimeout(resolve, 20));
  let saved;
  await execution.handoff((reference) => (saved = JSON.stringify(reference)));
  await new Promise(setImmediate); // a session that is closed at once cancels what it has handed over
  await session.close();
  session = open();
  return settle(await session.resumeTask(JSON.parse(saved)));
});
await Promise.all(results.values());
if (!modern) report.listed = (await session.listTasks()).tasks.map((task) => task.status);
await session.close();
await transport.terminateSession();
await client.close();
process.stdout.write(JSON.stringify(report) + '\n');
