// The clients of both TypeScript SDKs use many odd servers at once.
//
// A line on standard input is a job:
//
//   {"id": …, "sdk": "v1"|"v2", "transport": "http"|"sse"|"stdio", "url": …, "port": …, "lists": ["tools", …],
//     "call": {"tool": …}, "read": {"uri": …}, "prompt": {"name": …}, "seconds": …}
//
// A line on standard output is what came of it: {"id": …, "seen": {"lists", "texts", "isError"}, "error": …}, as
// package odd has it. A job over stdio has a port instead of a process: what is written to a pipe goes over a
// connection to it. Thus no process is started for each of hundreds of servers.

import { connect } from 'node:net';
import { createInterface } from 'node:readline';

import * as v2 from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ReadBuffer, serializeMessage } from '@modelcontextprotocol/sdk/shared/stdio.js';

const sdks = { v1: { Client, SSEClientTransport, StreamableHTTPClientTransport, ReadBuffer, serializeMessage }, v2 };

console.debug = console.error; // Standard output is for answers.

// Lines is the transport over stdio of an SDK, but for the process.
class Lines {
  constructor(sdk, port) {
    Object.assign(this, { sdk, port, buffer: new sdk.ReadBuffer() });
  }

  async start() {
    this.socket = connect(this.port, '127.0.0.1');
    this.socket.on('data', (chunk) => {
      this.buffer.append(chunk);
      for (;;) {
        try {
          const message = this.buffer.readMessage();
          if (message === null) break;
          this.onmessage?.(message);
        } catch (err) {
          this.onerror?.(err);
        }
      }
    });
    this.socket.on('error', (err) => this.onerror?.(err));
    this.socket.on('close', () => this.onclose?.());
    await new Promise((resolve) => this.socket.once('connect', resolve));
  }

  async send(message) {
    this.socket.write(this.sdk.serializeMessage(message));
  }

  async close() {
    this.socket.destroy();
  }
}

function transport(job) {
  const sdk = sdks[job.sdk];
  switch (job.transport) {
    case 'http':
      return new sdk.StreamableHTTPClientTransport(new URL(job.url));
    case 'sse':
      return new sdk.SSEClientTransport(new URL(job.url));
    default:
      return new Lines(sdk, job.port);
  }
}

// all reads the pages of a list. Like a careful host, it ends at a cursor that it has sent.
async function all(page, member, name) {
  const names = [];
  const sent = new Set();
  let cursor;
  do {
    sent.add(cursor);
    const result = await page(cursor === undefined ? undefined : { cursor });
    names.push(...result[member].map((item) => item[name]));
    cursor = result.nextCursor;
  } while (cursor !== undefined && !sent.has(cursor));
  return names;
}

const lists = {
  tools: (c) => all((p) => c.listTools(p), 'tools', 'name'),
  prompts: (c) => all((p) => c.listPrompts(p), 'prompts', 'name'),
  resources: (c) => all((p) => c.listResources(p), 'resources', 'uri'),
  templates: (c) => all((p) => c.listResourceTemplates(p), 'resourceTemplates', 'uriTemplate'),
};

const decoded = (data) => (data === undefined ? undefined : Buffer.from(data, 'base64').toString());
const parts = (list) => list.filter((part) => part !== undefined).join('\n');
const contents = (r) => parts([r.uri, r.text, decoded(r.blob)]);
const block = (b) => parts([b.text, b.mimeType, decoded(b.data), b.uri, b.resource && contents(b.resource)]);

async function use(client, job, seen) {
  for (const name of job.lists ?? []) seen.lists[name] = await lists[name](client);
  if (job.call) {
    const result = await client.callTool({ name: job.call.tool, arguments: {} });
    seen.isError = result.isError === true;
    seen.texts.call = parts([...(result.content ?? []).map(block), JSON.stringify(result.structuredContent)]);
  }
  if (job.read) seen.texts.read = parts((await client.readResource({ uri: job.read.uri })).contents.map(contents));
  if (job.prompt) seen.texts.prompt = parts((await client.getPrompt({ name: job.prompt.name })).messages.map((m) => block(m.content)));
}

async function run(job) {
  const seen = { lists: {}, texts: {}, isError: false };
  const options = job.sdk === 'v2' ? { versionNegotiation: { mode: 'auto' } } : undefined;
  const client = new sdks[job.sdk].Client({ name: 'odd-clients', version: '1.0.0' }, options);
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer in time')), job.seconds * 1000);
  });
  let error;
  try {
    await Promise.race([client.connect(transport(job)).then(() => use(client, job, seen)), late]);
  } catch (err) {
    error = err.message || String(err);
  }
  clearTimeout(timer);
  process.stdout.write(JSON.stringify({ id: job.id, seen, error }) + '\n');
  await client.close();
}

// The SDKs leave some promises alone, of streams in the background and of what is closed.
process.on('unhandledRejection', (err) => process.stderr.write(`unhandled: ${err}\n`));

for await (const line of createInterface({ input: process.stdin })) run(JSON.parse(line));
process.exit(0);
