// Runs one Redis for the script that started it: `redis-guard.mjs SERVER PORT`, stdin a pipe from that script.
// Says `ready`, or why not, on stdout. When stdin ends, because the script is done or is gone (even by SIGKILL), the
// server is killed and its folder removed.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const START_LIMIT_MS = 20_000;
const [binary, port] = process.argv.slice(2);

const folder = mkdtempSync(join(tmpdir(), 'chasquimq-redis-'));
const server = spawn(
  binary,
  ['--port', port, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no', '--daemonize', 'no'],
  { stdio: ['ignore', 'pipe', 'pipe'] },
);
let log = '';
const note = (chunk) => (log = (log + chunk).slice(-2000));
server.stdout.on('data', note);
server.stderr.on('data', note);
server.once('error', (error) => note(error.message));
server.once('close', end);

// SIGINT and SIGTERM may be sent to everything at once; the script's own end is what counts.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
process.stdin.resume().once('close', () => server.kill('SIGKILL'));

if (await isReady()) process.stdout.write('ready\n');
else server.kill('SIGKILL');

function end() {
  rmSync(folder, { recursive: true, force: true });
  // After `ready` nobody reads this any more, unless the server has died under the tests.
  if (!process.stdin.destroyed) process.stderr.write(`the Redis of this run has ended:\n${log}\n`);
  process.exit();
}

async function isReady() {
  for (const since = performance.now(); performance.now() - since < START_LIMIT_MS; await sleep(20)) {
    // The process id tells our server from another that took the port first.
    if ((await info()).includes(`process_id:${server.pid}\r\n`)) return true;
    if (server.exitCode !== null) return false;
  }
  return false;
}

function info() {
  return new Promise((resolve) => {
    let reply = '';
    const socket = connect(Number(port), '127.0.0.1', () => socket.end('INFO server\r\n'));
    socket.on('data', (chunk) => (reply += chunk));
    socket.on('error', () => {});
    socket.on('close', () => resolve(reply));
  });
}
