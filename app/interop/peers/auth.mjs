// What the clients that sign in share. The person is elsewhere: the URL that
// the browser would open is posted to the address "browser", which answers with
// the URL that the browser ends at.

import { randomUUID } from 'node:crypto';

export const options = () => JSON.parse(process.argv[2]);

// Provider remembers everything for as long as the process runs.
export class Provider {
  redirectUrl = 'http://127.0.0.1:41765/callback';
  callback;
  #o;
  #client;
  #tokens;
  #verifier;
  #state;

  constructor(o) {
    this.#o = o;
    if (o.document) this.clientMetadataUrl = o.document;
  }

  get clientMetadata() {
    return {
      client_name: 'Interop',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      application_type: 'native',
    };
  }

  state() {
    this.#state = randomUUID();
    return this.#state;
  }
  clientInformation = () => this.#client;
  saveClientInformation = (client) => void (this.#client = client);
  tokens = () => this.#tokens;
  saveTokens = (tokens) => void (this.#tokens = tokens);
  codeVerifier = () => this.#verifier;
  saveCodeVerifier = (verifier) => void (this.#verifier = verifier);

  async redirectToAuthorization(url) {
    const ended = await fetch(this.#o.browser, { method: 'POST', body: url.href });
    const text = await ended.text();
    if (!ended.ok) throw new Error(text);
    this.callback = new URL(text).searchParams;
    if (this.callback.get('state') !== this.#state) throw new Error('another state');
  }

  // spoil makes the access token one that the server refuses.
  spoil() {
    this.#tokens = { ...this.#tokens, access_token: 'spoilt' };
  }

  get access() {
    return this.#tokens?.access_token;
  }
}

// run signs in, calls both tools, and lets the token be refreshed. newSide makes
// a client and its transport; finish hands the answer of the browser over.
export async function run(provider, newSide, finish) {
  let { client, transport } = newSide();
  const signedIn = async (work) => {
    try {
      return await work();
    } catch (err) {
      if (!provider.callback) throw err;
      const callback = provider.callback;
      provider.callback = undefined;
      await finish(transport, callback);
      return undefined;
    }
  };
  const connected = () => client.connect(transport).then(() => true);
  if (!(await signedIn(connected))) {
    ({ client, transport } = newSide(transport));
    await connected();
  }
  const call = async (name) => (await client.callTool({ name, arguments: {} })).structuredContent;
  const report = { who: await call('who') };
  try {
    report.write = (await signedIn(() => call('write'))) ?? (await call('write'));
  } catch (err) {
    report.refused = err.message;
  }
  provider.spoil();
  report.again = (await signedIn(() => call('who'))) ?? (await call('who'));
  report.refreshed = provider.access !== 'spoilt';
  await client.close();
  process.stdout.write(JSON.stringify(report) + '\n');
}
