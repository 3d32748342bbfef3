// The client of the TypeScript SDK, version 2, as the programs in Go beside it:
// it connects, and makes calls when the driver says so over the channel of
// package control.
//
//   node client.mjs -http URL | -stdio PROGRAM [-legacy]

import { createReadStream, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const text = 'the quick brown fox jumps over the lazy dog and back';

const { values: o } = parseArgs({
  // Flags as in Go, with one dash.
  args: process.argv.slice(2).map((arg) => arg.replace(/^-(?=[a-z])/, '--')),
  options: { http: { type: 'string' }, stdio: { type: 'string' }, legacy: { type: 'boolean' } },
});

const client = new Client(
  { name: 'bench', version: '1' },
  { versionNegotiation: { mode: o.legacy ? 'legacy' : { pin: '2026-07-28' } } },
);
await client.connect(
  o.http ? new StreamableHTTPClientTransport(new URL(o.http)) : new StdioClientTransport({ command: o.stdio, args: ['-stdio'] }),
);

async function call() {
  const result = await client.callTool({ name: 'echo', arguments: { text } });
  if (result.isError || result.content.length !== 1 || result.content[0].text !== text) {
    throw new Error('an answer says ' + JSON.stringify(result).slice(0, 100));
  }
}

async function run(calls, concurrency) {
  let left = calls;
  const worker = async () => {
    while (left-- > 0) await call();
  };
  const before = process.cpuUsage();
  const start = process.hrtime.bigint();
  await Promise.all(Array.from({ length: concurrency }, worker));
  const elapsed = Number(process.hrtime.bigint() - start);
  const { user, system } = process.cpuUsage(before);
  return { ran: { elapsed, cpu: user + system } };
}

const say = (o) => writeSync(4, JSON.stringify(o) + '\n');

say({});
for await (const line of createInterface({ input: createReadStream(null, { fd: 3 }) })) {
  const request = JSON.parse(line);
  try {
    say(request.op === 'run' ? await run(request.calls, request.concurrency) : { error: `no operation "${request.op}" here` });
  } catch (err) {
    say({ error: String(err) });
  }
}
await client.close();
process.exit(0);
