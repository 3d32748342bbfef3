// The package ext-apps: a server with pages over stdio, and what its host's side says
// of tools and permissions given as JSON.
//
//   node apps.mjs serve
//   node apps.mjs read '{"tools": [...], "permissions": {...}, "capabilities": {...}}'

import { buildAllowAttribute, getToolUiResourceUri, isToolVisibilityAppOnly, isToolVisibilityModelOnly } from '@modelcontextprotocol/ext-apps/app-bridge';
import { getUiCapability, registerAppResource, registerAppTool, RESOURCE_MIME_TYPE } from '@modelcontextprotocol/ext-apps/server';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const uri = 'ui://cart/view.html';
const html = '<!doctype html><title>Cart</title>';

function newServer() {
  const server = new McpServer({ name: 'cart', version: '1.0.0' });
  const say = () => ({ content: [{ type: 'text', text: 'three things' }] });
  registerAppTool(server, 'show-cart', { description: 'Shows the cart.', _meta: { ui: { resourceUri: uri } } }, say);
  registerAppTool(server, 'set-quantity', { description: 'Changes it.', _meta: { ui: { resourceUri: uri, visibility: ['app'] } } }, say);
  const ui = { csp: { connectDomains: ['https://api.example.com'] }, permissions: { camera: {} }, prefersBorder: true };
  const text = { uri, mimeType: RESOURCE_MIME_TYPE, text: html };
  registerAppResource(server, 'cart', uri, {}, () => ({ contents: [{ ...text, _meta: { ui } }] }));
  const blob = { uri: 'ui://cart/blob.html', mimeType: RESOURCE_MIME_TYPE, blob: Buffer.from(html).toString('base64') };
  registerAppResource(server, 'blob', blob.uri, { _meta: { ui } }, () => ({ contents: [blob] }));
  return server;
}

function read({ tools, permissions, capabilities }) {
  const told = { tools: {}, allow: buildAllowAttribute(permissions), mimeTypes: getUiCapability(capabilities)?.mimeTypes };
  for (const tool of tools) {
    told.tools[tool.name] = {
      uri: getToolUiResourceUri(tool) ?? '', appOnly: isToolVisibilityAppOnly(tool), modelOnly: isToolVisibilityModelOnly(tool),
    };
  }
  process.stdout.write(JSON.stringify(told) + '\n');
}

if (process.argv[2] === 'serve') serveStdio(newServer);
else read(JSON.parse(process.argv[3]));
