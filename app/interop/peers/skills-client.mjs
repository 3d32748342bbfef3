// The client for skills of the TypeScript SDK, version 2: it lists the skills of a server,
// reads every file of them, and prints what it saw as JSON.
//
//   node skills-client.mjs URL

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';

const client = new Client({ name: 'skills', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const skills = new SkillsClient(client);

// attempt is a result, or the reason why there is none.
const attempt = (promise) => promise.catch((e) => ({ failed: e.reason ?? String(e) }));

const report = { directoryRead: skills.directoryRead, skills: {}, directory: [] };
const { skills: entries, invalid } = await skills.list();
report.invalid = invalid.length;
for (const entry of entries) {
  const { skill } = await skills.get(entry.uri);
  const seen = { same: JSON.stringify(skill) === JSON.stringify(entry), frontmatter: entry.frontmatter, files: {} };
  for (const { uri } of Array.isArray(entry.resources) ? entry.resources : [{ uri: entry.uri }]) {
    const file = await attempt(skills.read(skill, uri));
    seen.files[uri] = file.failed ?? (file.verified ? Buffer.from(file.bytes).toString('hex') : 'not verified');
  }
  report.skills[entry.uri] = seen;
}
if (skills.directoryRead) {
  const root = entries[0].uri.replace(/\/SKILL\.md$/, '');
  report.directory = (await skills.readDirectory(root)).resources.map((r) => `${r.uri} ${r.mimeType}`);
}
process.stdout.write(JSON.stringify(report) + '\n');
await client.close();
