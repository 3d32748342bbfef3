// The server of the TypeScript SDK, version 2, with the flags, the fixture and
// the control channel of the servers in Go (packages fixture and control).
//
//   node server.mjs -stdio | -mode json|sse|session [-tools N] [-blob BYTES] [-max-message BYTES]
//
// Its SDK makes a server for each request, or connection, by a function that
// registers everything; what can be prepared is prepared outside of it.

import { randomUUID } from 'node:crypto';
import { createReadStream, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const { values: o } = parseArgs({
  // Flags as in Go, with one dash.
  args: process.argv.slice(2).map((arg) => arg.replace(/^-(?=[a-z])/, '--')),
  options: {
    stdio: { type: 'boolean' },
    mode: { type: 'string', default: 'json' },
    tools: { type: 'string', default: '0' },
    blob: { type: 'string', default: '0' },
    'max-message': { type: 'string', default: '0' },
  },
});

const say = (text) => ({ content: [{ type: 'text', text }] });

const echo = { description: 'Echoes a text.', inputSchema: z.object({ text: z.string().describe('What to say.') }) };
const progress = {
  description: 'Reports progress as often as it is told.',
  inputSchema: z.object({ count: z.number().int().describe('How often.') }),
};
const filler = {
  description: 'Does what the tool before it does, a little later and a little better.',
  inputSchema: z.object({
    path: z.string().describe('Where to begin.'),
    recursive: z.boolean().optional().describe('Whether to go into folders.'),
    limit: z.number().int().optional().describe('The most results to give.'),
    kinds: z.array(z.string()).optional().describe('What to look for.'),
  }),
};
const fillers = Array.from({ length: Number(o.tools) }, (_, i) => `tool-${String(i).padStart(4, '0')}`);
const uri = 'bench://blob';
const blob = Buffer.from(Uint8Array.from({ length: Number(o.blob) }, (_, i) => (i * 7) & 0xff));

function newServer() {
  const server = new McpServer({ name: 'bench', version: '1' });
  server.registerTool('echo', echo, ({ text }) => say(text));
  server.registerTool('progress', progress, async ({ count }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) throw new Error('no progress token');
    for (let i = 1; i <= count; i++) {
      await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: i, total: count } });
    }
    return say('done');
  });
  for (const name of fillers) server.registerTool(name, filler, () => say(''));
  if (blob.length > 0) {
    server.registerResource('blob', uri, {}, () => ({ contents: [{ uri, blob: blob.toString('base64') }] }));
  }
  return server;
}

const limit = Number(o['max-message']) > 0 ? { maxRequestBodySize: Number(o['max-message']) } : {};

// sessions serves the handshake era with sessions, one server for each.
function sessions() {
  const all = new Map();
  return async (req, res) => {
    const known = all.get(req.headers['mcp-session-id']);
    if (known) return known.handleRequest(req, res);
    if (req.headers['mcp-session-id']) return res.writeHead(404).end();
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => all.set(id, transport),
      onsessionclosed: (id) => all.delete(id),
      ...limit,
    });
    await newServer().connect(transport);
    return transport.handleRequest(req, res);
  };
}

// control answers the driver until it is gone. Allocations are not counted here.
async function control(addr) {
  const answer = (line) => writeSync(4, JSON.stringify(line) + '\n');
  const used = () => {
    const { user, system } = process.cpuUsage();
    return { stats: { cpu: user + system, heap: process.memoryUsage().heapUsed } };
  };
  answer(addr ? { addr } : {});
  for await (const line of createInterface({ input: createReadStream(null, { fd: 3 }) })) {
    const { op } = JSON.parse(line);
    if (op === 'gc') globalThis.gc?.();
    answer(op === 'gc' || op === 'stats' ? used() : { error: `no operation "${op}" here` });
  }
  process.exit(0);
}

if (o.stdio) {
  serveStdio(newServer);
  await control();
} else {
  const responseMode = o.mode === 'sse' ? 'sse' : 'auto';
  const handler = o.mode === 'session' ? sessions() : toNodeHandler(createMcpHandler(newServer, { responseMode, ...limit }), limit);
  const http = createServer(handler);
  http.listen(0, '127.0.0.1', () => control(`127.0.0.1:${http.address().port}`));
}
