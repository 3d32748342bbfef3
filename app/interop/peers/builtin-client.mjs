// A client of either TypeScript SDK goes through a scene with a server: it lists the tools, makes
// calls and reads a resource, and prints what it saw as one object.
//
//   node builtin-client.mjs '{"sdk": "v1"|"v2", "mode": …, "transport": "http"|"stdio", "url": …,
//     "command": …, "args": […], "env": ["KEY=value", …], "calls": [{"name": …, "arguments": …}], "read": …}'
//
// mode is that of the version negotiation of v2: "legacy", "auto" or {"pin": …}.

import { Client as ClientV2, StreamableHTTPClientTransport as HTTPV2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as StdioV2 } from '@modelcontextprotocol/client/stdio';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as StdioV1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HTTPV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const o = JSON.parse(process.argv[2]);
const v1 = o.sdk === 'v1';
const info = { name: `typescript-${o.sdk}`, version: '1.0.0' };
const client = v1 ? new ClientV1(info) : new ClientV2(info, { versionNegotiation: { mode: o.mode } });

function connection() {
  if (o.transport === 'http') return new (v1 ? HTTPV1 : HTTPV2)(new URL(o.url));
  const env = Object.fromEntries(o.env.map((e) => [e.slice(0, e.indexOf('=')), e.slice(e.indexOf('=') + 1)]));
  return new (v1 ? StdioV1 : StdioV2)({ command: o.command, args: o.args, env, stderr: 'inherit' });
}

const transport = connection();
let version = '';
if (v1) {
  // The client tells nobody but its transport which revision was agreed on.
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (v) => {
    version = v;
    tell?.(v);
  };
}
await client.connect(transport);
if (!v1) version = client.getNegotiatedProtocolVersion();

const tools = [];
let cursor;
do {
  const page = await client.listTools({ cursor });
  tools.push(...page.tools.map((tool) => tool.name));
  cursor = page.nextCursor;
} while (cursor !== undefined);

const calls = [];
for (const call of o.calls) {
  const result = await client.callTool({ name: call.name, arguments: call.arguments ?? {} });
  calls.push({ text: result.content[0]?.text ?? '', failed: result.isError === true });
}
let read = '';
if (o.read) read = (await client.readResource({ uri: o.read })).contents[0].text;
if (version !== '' && !(client.getProtocolEra?.() === 'modern')) await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify({ version, tools, calls, read }));
