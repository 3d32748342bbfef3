// The server of the TypeScript SDK, version 1. Over HTTP it prints its URL as
// JSON, and ends with its standard input.
//
//   node v1-server.mjs stdio|http|sse

import { createServer } from 'node:http';
import { randomUUID } from 'node:crypto';

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';

import { Stops, listen } from './serving.mjs';
import { complete, fillers, hello, prompt, questions, review, say, schema, server as info, text, texts, uris } from './script.mjs';

const stops = new Stops();

function newServer() {
  const server = new McpServer(info, { capabilities: { resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } } });
  const tool = (name, handler, inputSchema = {}, more = {}) => server.registerTool(name, { inputSchema, ...more }, handler);
  const report = (extra, progress, total) => {
    const progressToken = extra._meta?.progressToken;
    if (progressToken === undefined) return Promise.resolve();
    return extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total } });
  };

  tool('echo', ({ message }) => say(message), { message: z.string() });
  tool('add', ({ a, b }) => ({ ...say(String(a + b)), structuredContent: { sum: a + b } }), { a: z.number(), b: z.number() }, { outputSchema: { sum: z.number() } });
  tool('fail', ({ reason }) => ({ ...say(`cannot: ${reason}`), isError: true }), { reason: z.string() });
  tool('steps', async ({ count }, extra) => {
    for (let i = 1; i <= count; i++) await report(extra, i, count);
    return say('done');
  }, { count: z.number() });
  for (const name of fillers) tool(name, () => say('nothing'));
  tool('hang', async (_, extra) => {
    await report(extra, 1);
    await stops.until(extra.signal);
    return say('nobody waits');
  });
  tool('stopped', async () => say(await stops.next()));
  tool('ask-person', async (_, extra) => {
    const ask = async (message) => (await server.server.elicitInput({ message, requestedSchema: schema }, { relatedRequestId: extra.requestId })).content.answer;
    return say(hello(await ask(questions.who), await ask(questions.team)));
  });
  tool('ask-model', async (_, extra) => {
    const said = await server.server.createMessage(
      { messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 50 },
      { relatedRequestId: extra.requestId },
    );
    return say(`${said.model}: ${text(said.content)}`);
  });
  tool('grow', () => {
    tool('grown', () => say('nothing'));
    return say('grown');
  });

  const watched = new Set();
  server.server.setRequestHandler(SubscribeRequestSchema, (req) => {
    watched.add(req.params.uri);
    return {};
  });
  server.server.setRequestHandler(UnsubscribeRequestSchema, (req) => {
    watched.delete(req.params.uri);
    return {};
  });
  tool('touch', async () => {
    if (watched.has(uris.counter)) await server.server.sendResourceUpdated({ uri: uris.counter });
    return say('touched');
  });

  const read = (of) => (uri, variables) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: of(variables) }] });
  server.registerResource('greeting', uris.greeting, {}, read(() => texts.greeting));
  server.registerResource('counter', uris.counter, {}, read(() => texts.counter));
  server.registerResource('item', new ResourceTemplate(uris.items, { list: undefined }), {}, read(({ id }) => texts.item + id));
  server.registerPrompt('review', { argsSchema: { language: completable(z.string(), complete) } }, ({ language }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: review(language) } }],
  }));
  return server;
}

// streamable serves each session with a server of its own.
function streamable() {
  const sessions = new Map();
  return async (req, res) => {
    const known = sessions.get(req.headers['mcp-session-id']);
    if (known) return known.handleRequest(req, res);
    if (req.headers['mcp-session-id']) return res.writeHead(404).end();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => sessions.set(id, transport),
      onsessionclosed: (id) => sessions.delete(id),
    });
    await newServer().connect(transport);
    return transport.handleRequest(req, res);
  };
}

function sse() {
  const streams = new Map();
  return async (req, res) => {
    const url = new URL(req.url, 'http://127.0.0.1');
    if (req.method === 'POST') {
      const stream = streams.get(url.searchParams.get('sessionId'));
      return stream ? stream.handlePostMessage(req, res) : res.writeHead(404).end();
    }
    const transport = new SSEServerTransport('/message', res);
    streams.set(transport.sessionId, transport);
    return newServer().connect(transport);
  };
}

switch (process.argv[2]) {
  case 'stdio':
    await newServer().connect(new StdioServerTransport());
    break;
  case 'http':
    listen(createServer(streamable()));
    break;
  case 'sse':
    listen(createServer(sse()));
    break;
  default:
    throw new Error('usage: node v1-server.mjs stdio|http|sse');
}
