/** `chasquimq migrate`, as it was built, in a process of its own; and how long its scripts held the server. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import type { ConnectionSettings } from '../server.js';
import { transitionOf } from '../soak/scripts.js';

const BIN = fileURLToPath(new URL('../../dist/cjs/tools/cli/bin.js', import.meta.url));
const MOST_RUNS = 20;
/** Scripts that hold the server no longer than this are not looked at, microseconds. */
const SLOW_MICROS = 1_000;
const SLOW_ENTRIES = 200_000;
const SCRIPTS = /(adopt_(jobs|queue|dedup)|return_(jobs|queue)|settle_adopted)/;

/** What a run of the command told. */
export interface Told {
  readonly done: boolean;
  readonly seconds: number;
  readonly queues: readonly {
    readonly moved: Readonly<Record<string, number>>;
    readonly stays: Readonly<Record<string, readonly string[]>>;
    readonly compared: number;
    readonly differ: Readonly<Record<string, readonly string[]>>;
  }[];
}

export async function migrate(names: readonly string[], url: string, args: readonly string[]): Promise<Told> {
  const command = [BIN, 'migrate', ...names, '--yes', '--json', ...args];
  const child = spawn(process.execPath, command, { env: { ...process.env, REDIS_URL: url } });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  await new Promise((resolve) => child.once('close', resolve));
  if (stdout === '') throw new Error(`chasquimq migrate ${args.join(' ')}: ${stderr}`);
  return JSON.parse(stdout) as Told;
}

/** Runs it until nothing is left. */
export async function migrateRest(names: readonly string[], url: string, args: readonly string[]): Promise<Told> {
  for (let run = 1; ; run += 1) {
    const told = await migrate(names, url, args);
    if (told.done || run === MOST_RUNS) return told;
  }
}

export function jobsIn({ queues }: Told): number {
  return queues.reduce((all, { moved }) => all + Object.values(moved).reduce((sum, jobs) => sum + jobs, 0), 0);
}

/** The server's log of slow commands, which sees what no client does: how long a script held it. */
export class SlowScripts {
  private constructor(private readonly client: Redis) {}

  static async watch(connection: ConnectionSettings): Promise<SlowScripts> {
    const client = new Redis({ ...connection });
    await client.config('SET', 'slowlog-log-slower-than', SLOW_MICROS);
    await client.config('SET', 'slowlog-max-len', SLOW_ENTRIES);
    const scripts = new SlowScripts(client);
    await scripts.forget();
    return scripts;
  }

  async forget(): Promise<void> {
    await this.client.slowlog('RESET');
  }

  /** Milliseconds of the longest script of a move since; 0: none was slow. */
  async longestMs(): Promise<number> {
    const entries = (await this.client.slowlog('GET', SLOW_ENTRIES)) as [number, number, number, string[]][];
    // one that the server does not have yet comes as its text: BullMQ's have no such head
    const isOwn = (script: string) => script.startsWith('#!lua') || SCRIPTS.test(transitionOf(script) ?? '');
    const own = entries.filter(([, , , [, script = '']]) => isOwn(script));
    return Math.max(0, ...own.map(([, , micros]) => micros)) / 1e3;
  }

  close(): void {
    this.client.disconnect();
  }
}
