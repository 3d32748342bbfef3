// The client of the TypeScript SDK, version 1.
//
//   node v1-client.mjs '{"transport": "http"|"sse"|"websocket"|"stdio", "url": …, "command": …, "args": […], "skip": […]}'

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { WebSocketClientTransport } from '@modelcontextprotocol/sdk/client/websocket.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

import { connect, options, Peer, run, text } from './script.mjs';

const o = options();

function connection() {
  switch (o.transport) {
    case 'http':
      return new StreamableHTTPClientTransport(new URL(o.url));
    case 'sse':
      return new SSEClientTransport(new URL(o.url));
    case 'websocket':
      return new WebSocketClientTransport(new URL(o.url));
    default:
      return new StdioClientTransport({ command: o.command, args: o.args });
  }
}

const peer = new Peer();
const client = new Client({ name: 'typescript-v1', version: '1.32.2' }, { capabilities: { elicitation: {}, sampling: {} } });
client.setRequestHandler(ElicitRequestSchema, (req) => peer.elicit(req.params));
client.setRequestHandler(CreateMessageRequestSchema, (req) => peer.sample(req.params));
client.setNotificationHandler(ResourceUpdatedNotificationSchema, (n) => peer.happened('updated', n.params.uri));
client.setNotificationHandler(ToolListChangedNotificationSchema, () => peer.happened('grown', true));

// The client tells nobody but its transport which revision was agreed on.
const transport = connection();
const tell = transport.setProtocolVersion?.bind(transport);
let version = '';
transport.setProtocolVersion = (v) => {
  version = v;
  tell?.(v);
};
await connect(client, transport);
peer.tap(transport);

const side = {
  server: () => client.getServerVersion()?.name,
  call: (name, args, opts) => client.callTool({ name, arguments: args }, undefined, opts),
  async list() {
    const names = [];
    let cursor;
    do {
      const page = await client.listTools({ cursor });
      names.push(...page.tools.map((tool) => tool.name));
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    return names;
  },
  read: async (uri) => text((await client.readResource({ uri })).contents),
  prompt: async (name, args) => text((await client.getPrompt({ name, arguments: args })).messages[0].content),
  complete: async (name, argument) => (await client.complete({ ref: { type: 'ref/prompt', name }, argument })).completion.values,
  subscribe: (uri) => client.subscribeResource({ uri }),
  async close() {
    await transport.terminateSession?.();
    await client.close();
  },
};
await run(side, peer, version, o.skip);
