// openid-client signs in on another device (RFC 8628): it registers, asks for a code, has the person
// at `browser` open the address, waits for the tokens, and refreshes them. It prints what it saw.
//
//   node device.mjs '{"issuer": …, "resource": …, "scope": …, "browser": …}'

import * as client from 'openid-client';

const o = JSON.parse(process.argv[2]);

const config = await client.dynamicClientRegistration(
  new URL(o.issuer),
  {
    client_name: 'openid-client',
    redirect_uris: [],
    grant_types: ['urn:ietf:params:oauth:grant-type:device_code', 'refresh_token'],
    response_types: [],
    token_endpoint_auth_method: 'none',
  },
  client.None(),
  { algorithm: 'oauth2', execute: [client.allowInsecureRequests] },
);
const asked = await client.initiateDeviceAuthorization(config, { scope: o.scope, resource: o.resource });
const opened = fetch(o.browser, { method: 'POST', body: asked.verification_uri_complete });
let refused = '';
const tokens = await client.pollDeviceAuthorizationGrant(config, asked, { resource: o.resource }).catch((e) => {
  refused = e.error ?? String(e);
});
const person = await opened;
const again = tokens && (await client.refreshTokenGrant(config, tokens.refresh_token, { resource: o.resource }));
console.log(
  JSON.stringify({
    userCode: asked.user_code,
    interval: asked.interval,
    person: person.status,
    token: again?.access_token ?? '',
    scope: tokens?.scope ?? '',
    refused,
  }),
);
