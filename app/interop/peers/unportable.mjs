// A server of the TypeScript SDK, version 2, over standard input and output, whose tool has
// schemas that models refuse or drop.

import { Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const inputSchema = {
  type: 'object',
  properties: {
    any: true,
    never: false,
    free: {},
    maybe: { type: ['string', 'null'] },
    far: { $ref: 'https://example.com/schema.json' },
    'a b': { anyOf: [{ type: 'string' }, { not: true }] },
    list: { type: 'array', items: { type: ['integer', 'string'] }, prefixItems: [{}] },
    when: { if: { const: 1 }, then: { type: 'number' } },
    open: { type: 'object', additionalProperties: true, patternProperties: { '^x-': {} } },
  },
  $defs: { embedded: { description: 'nothing' } },
};
const outputSchema = { type: 'object', $id: 'https://example.com/out', properties: { far: { $ref: 'other.json' } } };

serveStdio(() => {
  const server = new Server({ name: 'unportable', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: [{ name: 'bad', inputSchema, outputSchema }, { name: 'good', inputSchema: { type: 'object' } }] }));
  return server;
});
