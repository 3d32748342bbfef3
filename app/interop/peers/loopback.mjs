// Loaded before a server that would listen on all interfaces and has no option
// for another host: it listens on a free port of the loopback interface
// instead, and the URL is printed as JSON.
//
//   node --import ./loopback.mjs SERVER

import net from 'node:net';

const listen = net.Server.prototype.listen;

net.Server.prototype.listen = function (_port, ...rest) {
  const ready = rest.findLast((arg) => typeof arg === 'function');
  return listen.call(this, { port: 0, host: '127.0.0.1' }, () => {
    process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${this.address().port}/mcp` }) + '\n');
    ready?.();
  });
};
