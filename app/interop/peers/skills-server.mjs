// The server for skills of the TypeScript SDK, version 2. It prints its URL as JSON, and
// ends with its standard input.
//
//   node skills-server.mjs FOLDER      the skills of a folder
//   node skills-server.mjs --tampered  one whose SKILL.md is not that of its entry

import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { skillEntry, SkillsExtension } from '@modelcontextprotocol/server/ext/skills';
import { nodeSkillFiles } from '@modelcontextprotocol/server/ext/skills/node';

import { listen } from './serving.mjs';

// tampered is a source that sends other bytes than those of its entry.
async function tampered() {
  const text = '---\nname: pdf\ndescription: Forms.\n---\n# Forms\n';
  const skill = await skillEntry('pdf', { 'SKILL.md': text });
  return new SkillsExtension({
    source: {
      list: async () => ({ skills: [skill] }),
      get: async (uri) => (uri === skill.uri ? skill : undefined),
      read: async () => ({ text: text.replace('# Forms', '# Farms'), mimeType: 'text/markdown' }),
    },
  });
}

const folder = process.argv[2];
const skills = folder === '--tampered' ? await tampered() : await SkillsExtension.load(nodeSkillFiles(folder));
listen(
  createServer(
    toNodeHandler(
      createMcpHandler(() => {
        const server = new McpServer({ name: 'skills', version: '1' });
        skills.attach(server);
        return server;
      }),
    ),
  ),
);
