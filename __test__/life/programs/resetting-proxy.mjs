// Runs in a worker thread: a proxy before a server, which is told what to do with the next command of any connection. `answer`: it passes on the command and the
// answer, swallows what that connection sends behind it, and then resets the connection. `swallow`: it passes on the command, tells of the answer, which it
// swallows, and resets the connection at `reset`. Everything else it passes on.
import { connect, createServer } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

/** Milliseconds between the answer and the reset. */
const PAUSE_MS = 20;

let next;
let reset = () => {};

const proxy = createServer((client) => {
  const server = connect(workerData);
  let does;
  client.on('data', (data) => {
    if (does) return;
    does = next;
    next = undefined;
    server.write(data);
  });
  server.on('data', (data) => {
    if (does !== 'swallow') client.write(data);
    if (does === 'answer') setTimeout(() => client.resetAndDestroy(), PAUSE_MS);
    if (does !== 'swallow') return;
    reset = () => client.resetAndDestroy();
    parentPort.postMessage('swallowed');
  });
  client.on('error', () => {}).on('close', () => server.destroy());
  server.on('error', () => {}).on('close', () => client.destroy());
});

parentPort.on('message', (message) => {
  if (message === 'reset') return reset();
  next = message;
  parentPort.postMessage('armed');
});
proxy.listen(0, '127.0.0.1', () => parentPort.postMessage(proxy.address().port));
