// The client of the TypeScript SDK, version 2.
//
//   node v2-client.mjs '{"transport": "http"|"stdio", "url": …, "command": …, "args": […], "mode": …, "skip": […]}'
//
// mode is that of its version negotiation: "legacy", "auto" or {"pin": …}.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { connect, options, Peer, run, text } from './script.mjs';

const o = options();
const peer = new Peer();
const client = new Client(
  { name: 'typescript-v2', version: '2.4.0' },
  { capabilities: { elicitation: { form: {} }, sampling: {} }, versionNegotiation: { mode: o.mode } },
);
client.setRequestHandler('elicitation/create', (req) => peer.elicit(req.params));
client.setRequestHandler('sampling/createMessage', (req) => peer.sample(req.params));
client.setNotificationHandler('notifications/resources/updated', (n) => peer.happened('updated', n.params.uri));
client.setNotificationHandler('notifications/tools/list_changed', () => peer.happened('grown', true));

const transport =
  o.transport === 'http'
    ? new StreamableHTTPClientTransport(new URL(o.url))
    : new StdioClientTransport({ command: o.command, args: o.args });
await connect(client, transport);
peer.tap(transport);
const modern = client.getProtocolEra() === 'modern';

let subscription;
const side = {
  server: () => client.getServerVersion()?.name,
  call: (name, args, opts) => client.callTool({ name, arguments: args }, opts),
  list: async () => (await client.listTools()).tools.map((tool) => tool.name),
  read: async (uri) => text((await client.readResource({ uri })).contents),
  prompt: async (name, args) => text((await client.getPrompt({ name, arguments: args })).messages[0].content),
  complete: async (name, argument) => (await client.complete({ ref: { type: 'ref/prompt', name }, argument })).completion.values,
  async subscribe(uri) {
    if (!modern) return client.subscribeResource({ uri });
    subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
  },
  async close() {
    await subscription?.close();
    if (!modern) await transport.terminateSession?.();
    await client.close();
  },
};
await run(side, peer, client.getNegotiatedProtocolVersion(), o.skip);
