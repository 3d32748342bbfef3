// What servers here share.

// Stops counts calls that were cancelled, for the tools hang and stopped.
export class Stops {
  #count = 0;
  #waiting = [];

  // until waits until a signal is aborted, and counts that.
  until(signal) {
    return new Promise((resolve) => {
      const stop = () => {
        this.#count++;
        this.#waiting.shift()?.();
        resolve();
      };
      if (signal.aborted) stop();
      else signal.addEventListener('abort', stop, { once: true });
    });
  }

  // next waits for the next call that was cancelled.
  async next() {
    if (this.#count === 0) await new Promise((resolve) => this.#waiting.push(resolve));
    this.#count--;
    return 'stopped';
  }
}

// listen serves on the loopback interface, prints the URL as JSON, and ends the
// process when standard input ends: with whoever started it.
export function listen(http) {
  http.listen(0, '127.0.0.1', () => {
    process.stdout.write(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp` }) + '\n');
  });
  process.stdin.on('end', () => process.exit(0)).resume();
}
