// The client of the TypeScript SDK, version 2, signing in.
//
//   node v2-auth.mjs '{"url": …, "browser": …, "document": …, "mode": …}'

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { options, Provider, run } from './auth.mjs';

const o = options();
const authProvider = new Provider(o);

await run(
  authProvider,
  () => ({
    client: new Client({ name: 'typescript-v2', version: '2.4.0' }, { versionNegotiation: { mode: o.mode } }),
    transport: new StreamableHTTPClientTransport(new URL(o.url), { authProvider }),
  }),
  (transport, callback) => transport.finishAuth(callback),
);
