// Clients of the TypeScript SDKs, one after the other and some at once, each with some calls to a
// server that counts them, through a proxy that puts faults into the traffic.
//
//   node chaos.mjs <<< '{"sdk": 1|2, "mode": …, "calls": 5, "timeout": 1000, "limit": 20000, "atOnce": 8,
//                        "trials": [{"name": …, "url": …}, {"name": …, "command": …, "args": […]}]}'
//
// It prints one line of JSON for each trial: its name, why it did not connect, and of each call its
// key, what came of it, and "hang" for what had not ended after limit milliseconds.

import { readFileSync } from 'node:fs';

// On standard input, since trials with many seeds are more than an argument may hold.
const o = JSON.parse(readFileSync(0, 'utf8'));

async function sdk() {
  if (o.sdk === 1) {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    return {
      client: () => new Client({ name: 'typescript-v1', version: '1.32.2' }),
      Stdio: StdioClientTransport,
      HTTP: StreamableHTTPClientTransport,
      call: (client, args, opts) => client.callTool({ name: 'count', arguments: args }, undefined, opts),
    };
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
  return {
    client: () => new Client({ name: 'typescript-v2', version: '2.4.0' }, { versionNegotiation: { mode: o.mode } }),
    Stdio: StdioClientTransport,
    HTTP: StreamableHTTPClientTransport,
    call: (client, args, opts) => client.callTool({ name: 'count', arguments: args }, opts),
  };
}

const { client: newClient, Stdio, HTTP, call } = await sdk();

// What a client does not catch itself is part of what is seen.
let uncaught = [];
process.on('unhandledRejection', (e) => uncaught.push(String(e)));
process.on('uncaughtException', (e) => uncaught.push(String(e)));

// bounded is the end of a promise, or "hang".
async function bounded(promise) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => resolve({ hang: true }), o.limit);
  });
  const end = promise.then(
    (value) => ({ value }),
    (e) => ({ error: String(e?.message ?? e) }),
  );
  const result = await Promise.race([end, late]);
  clearTimeout(timer);
  return result;
}

async function trial(t) {
  const client = newClient();
  client.onerror = () => {};
  const transport = t.url ? new HTTP(new URL(t.url)) : new Stdio({ command: t.command, args: t.args, stderr: 'ignore' });
  const report = { name: t.name, calls: [] };
  const connected = await bounded(client.connect(transport, { timeout: o.timeout }));
  if (connected.hang || connected.error !== undefined) {
    report.connect = connected;
  } else {
    for (let i = 0; i < o.calls; i++) {
      const key = `${t.name}-${i}`;
      const got = await bounded(call(client, { key }, { timeout: o.timeout, onprogress: i % 2 ? () => {} : undefined }));
      const text = got.value?.content?.[0]?.text;
      report.calls.push({ key, text, error: got.error, hang: got.hang });
    }
  }
  report.close = await bounded(client.close());
  console.log(JSON.stringify(report));
}

const waiting = [...o.trials];
await Promise.all(
  Array.from({ length: o.atOnce }, async () => {
    for (let t = waiting.shift(); t; t = waiting.shift()) await trial(t);
  }),
);
if (uncaught.length > 0) console.error(`uncaught: ${uncaught.length}, such as ${uncaught[0]}`);
process.exit(0);
