// Gives a command a Redis of its own: `node .ci/redis.mjs npx vitest run __test__/queue.add.test.ts`.
//
// The server listens on a free port of this machine only, keeps nothing on disk but a temporary folder, and ends with
// the command. REDIS_URL, when set, names the server to use instead, and none is started. A server that is not there
// is installed through the system's package manager where that needs no answer from anyone.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { installUntil } from './packages.mjs';
import { ask, isEntry, main, root, run, say, Stop } from './step.mjs';

const SERVERS = ['redis-server', 'valkey-server'];
const OLDEST_MAJOR = 7;
const PACKAGES = {
  'apt-get': SERVERS,
  apk: ['redis', 'valkey'],
  dnf: ['valkey', 'redis'],
  pacman: ['valkey'],
  brew: ['redis'],
};

/** Calls `body` with the URL of a server to use, and ends the server (if it is ours) once `body` has settled. */
export const withRedis = (body) => withServers(1, ([url]) => body(url));

/** As `withRedis`, with the URLs of so many servers: of one, where REDIS_URL names it. */
export async function withServers(count, body) {
  if (process.env.REDIS_URL) {
    say('> redis: the server in REDIS_URL');
    return body([process.env.REDIS_URL]);
  }
  const binary = await needServer();
  const servers = [];
  try {
    while (servers.length < count) servers.push(await startServer(binary));
    return await body(servers.map(({ url }) => url));
  } finally {
    await Promise.all(servers.map((server) => server.end()));
  }
}

let found;
/** The server of this machine, installed where there is none; what runs beside each other then finds it. Null where REDIS_URL names one. */
export async function needServer() {
  if (process.env.REDIS_URL) return null;
  return (found ??= (await findServer()) ?? (await installUntil(findServer, PACKAGES)) ?? noServer());
}

async function findServer() {
  for (const binary of SERVERS) {
    const version = await ask(binary, ['--version']);
    const major = /v=(\d+)/.exec(version ?? '')?.[1];
    if (major === undefined) continue;
    if (Number(major) >= OLDEST_MAJOR) return binary;
    say(
      `${binary} on PATH is too old (${version.split(' ').slice(0, 3).join(' ')}): ${OLDEST_MAJOR}.0 is the oldest that works`,
    );
  }
  return null;
}

function noServer() {
  throw new Stop(`There is no Redis ${OLDEST_MAJOR}.0 or newer (or Valkey) here to test against. One of these lines brings it:
  Debian, Ubuntu   sudo apt-get install redis-server
  Fedora           sudo dnf install valkey
  macOS            brew install redis
  Docker           docker run --rm -d -p 6379:6379 redis, and then set REDIS_URL=redis://127.0.0.1:6379
and then run the same command again.`);
}

async function startServer(binary) {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort();
    // The guard starts the server and outlives this process by just the time it takes to end it, however this process
    // comes to its end. Detached, so that a Ctrl-C in the terminal reaches the commands first and the server last.
    const guard = spawn(process.execPath, [join(root, '.ci', 'redis-guard.mjs'), binary, String(port)], {
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    });
    const ended = new Promise((resolve) => guard.once('close', resolve));
    const end = async () => {
      guard.stdin.destroy();
      await ended;
    };
    guard.stdin.on('error', () => {});
    const answer = await new Promise((resolve) => {
      guard.stdout.once('data', (line) => resolve(String(line).trim()));
      guard.once('close', () => resolve('the guard ended'));
    });
    if (answer === 'ready') {
      say(`> redis: ${binary} on port ${port}`);
      return { url: `redis://127.0.0.1:${port}`, end };
    }
    await end();
    // Another program may have taken the port between our look and the server's.
    if (attempt === 3) throw new Stop(`${binary} does not start: ${answer}`);
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

if (isEntry(import.meta.url)) {
  await main(async ([command, ...args]) => {
    if (!command) throw new Stop('usage: node .ci/redis.mjs COMMAND [ARGUMENTS]');
    await withRedis((url) => run([command, ...args].join(' '), command, args, { env: { REDIS_URL: url } }));
  });
}
