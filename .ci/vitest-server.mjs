// In each process of tests, before those of each file: the server of this worker, and nothing on it. `.ci/test.mjs` starts a server for each
// worker; tests that run at the same time then don't wait for each other's scripts. A server that somebody named in REDIS_URL is left as it is.
import { connect } from 'node:net';

const urls = process.env.REDIS_OF_WORKERS?.split(' ') ?? [];
if (urls.length > 0) {
  const url = urls[Number(process.env.VITEST_POOL_ID) - 1];
  if (!url) throw new Error(`there are ${urls.length} servers, and this is worker ${process.env.VITEST_POOL_ID}`);
  process.env.REDIS_URL = url;
  await flush(new URL(url));
}

// The connection stays open until the answer is there: newer servers empty themselves in the background, and forget who has gone meanwhile.
async function flush({ hostname, port, host }) {
  const socket = connect(Number(port), hostname);
  const answer = await new Promise((resolve, reject) => {
    socket.once('data', (data) => resolve(String(data)));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`the server at ${host} has closed the connection`)));
    socket.write('FLUSHALL\r\n');
  });
  socket.destroy();
  if (answer !== '+OK\r\n') throw new Error(`the server at ${host} is not emptied: ${answer}`);
}
