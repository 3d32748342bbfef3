// An authorization server of oidc-provider for one protected resource. It
// prints its URL as JSON, and ends with its standard input. Its issuer is the
// address of a proxy in front of it.
//
//   node oidc-provider.mjs '{"issuer": …, "resource": …, "redirectURI": …, "documents": {URL: URL}}'
//
// With opaque and guardKeys, a JWK set, tokens are opaque, and the clients "guard" and "key" may ask
// about them.
//
// documents says where client ID metadata documents are in truth: the provider
// takes https URLs alone, and reaches no loopback address of itself.

import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';

import { errors, Provider } from 'oidc-provider';

const o = JSON.parse(process.argv[2]);
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const asks = { redirect_uris: [], grant_types: [], response_types: [] };

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const provider = new Provider(o.issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
    cookies: { keys: ['interop'] },
    clients: [
      {
        client_id: 'desk',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        redirect_uris: [o.redirectURI],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
      {
        client_id: 'other',
        application_type: 'native',
        token_endpoint_auth_method: 'none',
        redirect_uris: [o.redirectURI],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
      },
      // Resource servers, which ask about opaque tokens.
      ...(o.opaque
        ? [
            { client_id: 'guard', client_secret: 'guard secret', ...asks },
            { client_id: 'key', token_endpoint_auth_method: 'private_key_jwt', jwks: o.guardKeys, ...asks },
          ]
        : []),
    ],
    clientDefaults: { id_token_signed_response_alg: 'RS256' },
    // Tokens are refreshed without the scope offline_access, too.
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    pkce: { required: () => true },
    // The dispatcher is what refuses addresses of this machine.
    fetch: (url, { dispatcher: _, ...options }) => fetch(o.documents?.[String(url)] ?? url, options),
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 3600, Interaction: 600, RefreshToken: 3600, Session: 3600 },
    features: {
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      devInteractions: { enabled: true },
      introspection: { enabled: true },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_ctx, resource) => {
          if (resource !== o.resource && resource !== o.elsewhere) throw new errors.InvalidTarget();
          return { scope: 'files:read files:write', audience: resource, accessTokenTTL: 600, accessTokenFormat: o.opaque ? 'opaque' : 'jwt' };
        },
      },
    },
  });
  provider.proxy = true;
  server.on('request', provider.callback());
  process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` }) + '\n');
});
process.stdin.on('end', () => process.exit(0)).resume();
