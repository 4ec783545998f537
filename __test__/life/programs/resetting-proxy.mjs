// Runs in a worker thread: a proxy before a server. Armed, it passes on the next command of any connection, and the answer, and swallows what that connection
// sends behind it; then it resets the connection, and passes everything on again.
import { connect, createServer } from 'node:net';
import { parentPort, workerData } from 'node:worker_threads';

/** Milliseconds between the answer and the reset. */
const PAUSE_MS = 20;

let isArmed = false;

const proxy = createServer((client) => {
  const server = connect(workerData);
  let isCaught = false;
  client.on('data', (data) => {
    if (isCaught) return;
    isCaught = isArmed;
    isArmed = false;
    server.write(data);
  });
  server.on('data', (data) => {
    client.write(data);
    if (isCaught) setTimeout(() => client.resetAndDestroy(), PAUSE_MS);
  });
  client.on('error', () => {}).on('close', () => server.destroy());
  server.on('error', () => {}).on('close', () => client.destroy());
});

parentPort.on('message', () => {
  isArmed = true;
  parentPort.postMessage('armed');
});
proxy.listen(0, '127.0.0.1', () => parentPort.postMessage(proxy.address().port));
