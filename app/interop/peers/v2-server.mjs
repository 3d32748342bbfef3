// The server of the TypeScript SDK, version 2: one handler for both eras. Over
// HTTP it prints its URL as JSON, and ends with its standard input.
//
//   node v2-server.mjs stdio|http|sessions
//
// http is the SDK's own endpoint, which serves the handshake era without
// sessions; sessions serves that era alone, with sessions.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { completable, createMcpHandler, inputRequired, inputResponse, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

import { listen, Stops } from './serving.mjs';
import { complete, fillers, hello, prompt, questions, review, say, schema, server as info, text, texts, uris } from './script.mjs';

const stops = new Stops();
// The state of the program, which outlives the server of one request.
let grown = false;
// How the endpoint tells its subscribers, if there is one.
let notify;

const asked = (ctx, key) => inputResponse(ctx.mcpReq.inputResponses, key);

function addAsking(tool) {
  // Both questions at once: what is missing in the answers is asked.
  tool('ask-person', (_, ctx) => {
    const who = asked(ctx, 'who');
    const team = asked(ctx, 'team');
    if (who.kind !== 'elicit' || team.kind !== 'elicit') {
      return inputRequired({
        requestState: 'asked',
        inputRequests: {
          who: inputRequired.elicit({ message: questions.who, requestedSchema: schema }),
          team: inputRequired.elicit({ message: questions.team, requestedSchema: schema }),
        },
      });
    }
    if (ctx.mcpReq.requestState() !== 'asked') throw new Error('the state is missing');
    return say(hello(who.content.answer, team.content.answer));
  });
  tool('ask-model', (_, ctx) => {
    const said = asked(ctx, 'model');
    if (said.kind !== 'sampling') {
      return inputRequired({
        inputRequests: {
          model: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 50 }),
        },
      });
    }
    return say(`${said.result.model}: ${text(said.result.content)}`);
  });
}

function newServer() {
  const server = new McpServer(info, { capabilities: { resources: { subscribe: true, listChanged: true }, tools: { listChanged: true } } });
  const tool = (name, handler, inputSchema = {}, more = {}) =>
    server.registerTool(name, { inputSchema: z.object(inputSchema), ...more }, handler);
  const report = (ctx, progress, total) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return Promise.resolve();
    return ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
  };

  tool('echo', ({ message }) => say(message), { message: z.string() });
  tool('add', ({ a, b }) => ({ ...say(String(a + b)), structuredContent: { sum: a + b } }), { a: z.number(), b: z.number() }, { outputSchema: z.object({ sum: z.number() }) });
  tool('fail', ({ reason }) => ({ ...say(`cannot: ${reason}`), isError: true }), { reason: z.string() });
  tool('steps', async ({ count }, ctx) => {
    for (let i = 1; i <= count; i++) await report(ctx, i, count);
    return say('done');
  }, { count: z.number() });
  for (const name of fillers) tool(name, () => say('nothing'));
  tool('hang', async (_, ctx) => {
    await report(ctx, 1);
    await stops.until(ctx.mcpReq.signal);
    return say('nobody waits');
  });
  tool('stopped', async () => say(await stops.next()));
  addAsking(tool);
  tool('grow', () => {
    grown = true;
    tool('grown', () => say('nothing'));
    notify?.toolsChanged();
    return say('grown');
  });
  if (grown) tool('grown', () => say('nothing'));
  tool('touch', async () => {
    if (notify) notify.resourceUpdated(uris.counter);
    else await server.server.sendResourceUpdated({ uri: uris.counter });
    return say('touched');
  });

  const read = (of) => (uri, variables) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: of(variables) }] });
  server.registerResource('greeting', uris.greeting, {}, read(() => texts.greeting));
  server.registerResource('counter', uris.counter, {}, read(() => texts.counter));
  server.registerResource('item', new ResourceTemplate(uris.items, { list: undefined }), {}, read(({ id }) => texts.item + id));
  server.registerPrompt('review', { argsSchema: z.object({ language: completable(z.string(), complete) }) }, ({ language }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: review(language) } }],
  }));
  return server;
}

// withSubscriptions accepts subscriptions of the handshake era.
function withSubscriptions(server) {
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
  return server;
}

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
    });
    await withSubscriptions(newServer()).connect(transport);
    return transport.handleRequest(req, res);
  };
}

switch (process.argv[2]) {
  case 'stdio':
    serveStdio(({ era }) => (era === 'legacy' ? withSubscriptions(newServer()) : newServer()));
    break;
  case 'http': {
    const handler = createMcpHandler(newServer);
    notify = handler.notify;
    listen(createServer(toNodeHandler(handler)));
    break;
  }
  case 'sessions':
    listen(createServer(sessions()));
    break;
  default:
    throw new Error('usage: node v2-server.mjs stdio|http|sessions');
}
