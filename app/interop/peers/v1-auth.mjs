// The client of the TypeScript SDK, version 1, signing in.
//
//   node v1-auth.mjs '{"url": …, "browser": …, "document": …}'

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { options, Provider, run } from './auth.mjs';

const o = options();
const authProvider = new Provider(o);

await run(
  authProvider,
  () => ({
    client: new Client({ name: 'typescript-v1', version: '1.32.2' }),
    transport: new StreamableHTTPClientTransport(new URL(o.url), { authProvider }),
  }),
  (transport, callback) => transport.finishAuth(callback.get('code')),
);
