// The client of the TypeScript SDK, version 1, with its experimental support of tasks. It calls the tools of the
// server that tasks_clients_test.go starts, and prints what it saw as JSON.
//
//   node v1-tasks-client.mjs URL

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema, TaskStatusNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

const client = new Client({ name: 'typescript-v1', version: '1.32.2' }, { capabilities: { elicitation: {} } });
const report = { version: '', capabilities: {}, notified: 0, errors: [], listed: [], calls: {} };
let asked = [];
const answers = { region: { region: 'north' }, confirm: { confirm: true }, left: { left: 'L' }, right: { right: 'R' } };
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  const related = params._meta?.['io.modelcontextprotocol/related-task'] ? 'of a task' : 'of no task';
  asked.push(`${params.message} ${related}`);
  return { action: 'accept', content: answers[Object.keys(params.requestedSchema.properties)[0]] };
});
client.setNotificationHandler(TaskStatusNotificationSchema, () => void report.notified++);
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const tell = transport.setProtocolVersion.bind(transport);
transport.setProtocolVersion = (v) => {
  report.version = v;
  tell(v);
};
await client.connect(transport);
report.capabilities = client.getServerCapabilities().tasks;
// It has to be told which tools are tasks.
await client.listTools();
const { tasks } = client.experimental;

const failed = (e) => ({ status: 'thrown', text: e.message, code: e.code ?? 0, data: e.data ?? null, asked });

// drive follows a call to its end. each is told of the states of the task.
async function drive(name, args = {}, each = async () => {}) {
  asked = [];
  const call = { kind: 'immediate', asks: false, asked };
  for await (const message of tasks.callToolStream({ name, arguments: args }, CallToolResultSchema)) {
    if (message.type === 'taskCreated') call.kind = 'task';
    if (message.task) {
      call.asks ||= message.task.status === 'input_required';
      call.status = message.task.status;
      call.id = message.task.taskId;
      await each(message.task);
    }
    if (message.type === 'error') Object.assign(call, { text: message.error.message.replace(call.id, 'ID'), code: message.error.code });
    if (message.type === 'result') {
      Object.assign(call, { status: 'completed', text: message.result.content[0].text, isError: message.result.isError ?? false });
    }
  }
  return call;
}

const ids = {};
for (const name of ['plain', 'deploy', 'pair', 'refuse', 'break', 'must']) {
  const { id, ...call } = await drive(name);
  report.calls[name] = call;
  ids[name] = id;
}
// The stream tells of the state alone; the result of a task that failed is to be had all the same.
for (const name of ['refuse', 'break']) {
  asked = [];
  const { statusMessage } = await tasks.getTask(ids[name]);
  report.calls[`${name} result`] = await tasks.getTaskResult(ids[name], CallToolResultSchema).then(
    (r) => ({ status: statusMessage, text: r.content[0].text, isError: r.isError, asked }),
    (e) => ({ ...failed(e), status: statusMessage }),
  );
}
const { id, ...wait } = await drive('wait', {}, async ({ taskId, statusMessage }) => {
  if (statusMessage?.startsWith('waiting')) await tasks.cancelTask(taskId);
});
report.calls.wait = wait;
asked = [];
report.calls['cancel again'] = await tasks.cancelTask(id).then(() => ({ status: 'acknowledged', asked }), failed);
report.calls.unknown = await tasks.getTask('00000000-0000-4000-8000-000000000000').then(() => ({ status: 'found', asked }), failed);
// A tool that must be a task, called as an ordinary one, and the other way round.
report.calls['must at once'] = await client.request({ method: 'tools/call', params: { name: 'must', arguments: {} } }, CallToolResultSchema).then(
  () => ({ status: 'completed', asked }), failed);
report.calls['plain as a task'] = await client.request({ method: 'tools/call', params: { name: 'plain', arguments: {}, task: {} } }, CallToolResultSchema).then(
  () => ({ status: 'completed', asked }), failed);
report.listed = (await tasks.listTasks()).tasks.map((task) => task.status);
await transport.terminateSession();
await client.close();
process.stdout.write(JSON.stringify(report) + '\n');
