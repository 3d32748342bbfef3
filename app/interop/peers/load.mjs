// What ordinary programs ask for at once, by a client of the TypeScript SDK:
//
//   node load.mjs '{"sdk": "v1"|"v2", "transport": "http"|"stdio", "url": …, "command": …, "args": […],
//                   "mode": …, "clients": …, "parallel": …, "sequential": …}'
//
// With clients, so many connect at once, and each lists the tools three times
// and calls echo. Otherwise one client calls echo, parallel times at once and
// then sequential times. It prints how many requests were answered, and the
// first errors.

import * as v1 from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HTTP1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';

import { options, text } from './script.mjs';

const o = options();

async function connect() {
  const old = o.sdk === 'v1';
  const client = old
    ? new v1.Client({ name: 'load', version: '1.0.0' })
    : new v2.Client({ name: 'load', version: '1.0.0' }, { versionNegotiation: { mode: o.mode } });
  const HTTP = old ? HTTP1 : v2.StreamableHTTPClientTransport;
  const Stdio = old ? Stdio1 : Stdio2;
  const transport =
    o.transport === 'http' ? new HTTP(new URL(o.url)) : new Stdio({ command: o.command, args: o.args });
  await client.connect(transport);
  return {
    call: (message) => client.callTool({ name: 'echo', arguments: { message } }),
    list: () => client.listTools(),
    async close() {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}

let answered = 0;
const errors = [];

// count notes how a request ended.
async function count(request) {
  try {
    await request;
    answered++;
  } catch (err) {
    if (errors.length < 5) errors.push(String(err?.message ?? err));
  }
}

async function echo(client, message) {
  const said = text((await client.call(message)).content);
  if (said !== message) throw new Error(`echo said ${said}`);
}

async function one() {
  const client = await connect();
  for (let i = 0; i < 3; i++) await count(client.list());
  await count(echo(client, 'hello'));
  await client.close();
}

if (o.clients > 0) {
  await Promise.all(Array.from({ length: o.clients }, () => one().catch((err) => count(Promise.reject(err)))));
} else {
  const client = await connect();
  await Promise.all(Array.from({ length: o.parallel }, (_, i) => count(echo(client, `parallel ${i}`))));
  for (let i = 0; i < o.sequential; i++) await count(echo(client, `sequential ${i}`));
  await client.close();
}
process.stdout.write(JSON.stringify({ answered, errors }) + '\n');
