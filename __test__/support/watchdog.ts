/**
 * The watchdog of long tests: the longest script that the servers saw, and the longest pause of this process's event loop. `end` fails when
 * one of them is over its limit.
 *
 * How it judges. Clocks count also the time in which the machine ran something else in the place of who is measured, and the machines that run
 * tests are loaded. Where the system tells how long a thread was ready and did not run (`/proc/<pid>/schedstat` of Linux), that time is taken
 * off: whatever of it fell between two looks, a tenth of a second apart, or longer where a script blocked the server. So a
 * script is judged by the least that it can have taken, and fails nobody who was only kept waiting; one that blocks the server for long exceeds
 * what it may have waited for, and fails. Where nothing is told (another system, a server on another machine) the limits are five times as high.
 */
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { mastersOf } from './redis.js';
import { scriptNames } from '../../bench/soak/scripts.js';

const LOOK_MS = 100;
const TICK_MS = 10;
const SLOW_US = 5_000;
const KEPT = 1_024;
const BLIND_FACTOR = 5;

export interface WatchdogOptions {
  /** Longest time for one script. */
  readonly scriptMs?: number;
  /** Longest time in which the event loop does nothing; `Infinity` for a test that itself works for long. */
  readonly pauseMs?: number;
  /** Only scripts that name it in their first arguments, for instance a queue's name: a server that tests share has other scripts, too. */
  readonly about?: string;
}

/** What took its time. */
export interface Held {
  /** Name of the script, or of the command; `event loop`. */
  readonly by: string;
  /** Milliseconds by the clock. */
  readonly clockMs: number;
  /** The least that it can have taken. */
  readonly ms: number;
  /** Whether `ms` is known; else it is the clock's. */
  readonly isKnown: boolean;
}

export interface Watchdog {
  /** The longest so far: by the least that they can have taken. */
  readonly longest: { script: Held | undefined; pause: Held | undefined };
  /** Stops watching; throws when a limit was exceeded. */
  end(): Promise<void>;
}

/** Starts watching the masters behind this client, which stays open until `end`, and this process. */
export async function watchdog(client: Redis, options: WatchdogOptions = {}): Promise<Watchdog> {
  const { scriptMs = 20, pauseMs = 50, about = '' } = options;
  const servers = await Promise.all(mastersOf(client).map((master) => WatchedMaster.of(master, about)));
  const loop = new WatchedLoop();
  let isOver = false;
  const looking = (async () => {
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      await Promise.all(servers.map((server) => server.look()));
    }
  })();
  const longest = () => ({ script: worst(servers.map((server) => server.longest)), pause: loop.longest });
  return {
    get longest() {
      return longest();
    },
    async end() {
      isOver = true;
      loop.end();
      await looking;
      const { script, pause } = longest();
      const over = [exceeds(script, scriptMs), exceeds(pause, pauseMs)].filter((text) => text !== '');
      if (over.length > 0) throw new Error(`the watchdog: ${over.join('; ')}`);
    },
  };
}

function exceeds(held: Held | undefined, limitMs: number): string {
  if (!held || held.ms <= limitMs * (held.isKnown ? 1 : BLIND_FACTOR)) return '';
  const { by, ms, clockMs } = held;
  return `${by} took at least ${ms.toFixed(1)} ms (${clockMs.toFixed(1)} by the clock) of ${limitMs}`;
}

function worst(all: readonly (Held | undefined)[]): Held | undefined {
  return all.reduce((one, other) => ((other?.ms ?? -1) > (one?.ms ?? -1) ? other : one), undefined);
}

type SlowEntry = [id: number, seconds: number, us: number, command: string[]];

/** A server, and its commands that took long. */
class WatchedMaster {
  longest: Held | undefined;
  #last = -1;
  #waitedNs: number | undefined;

  private constructor(
    private readonly client: Redis,
    private readonly about: string,
    private readonly thread: string | undefined,
  ) {}

  static async of(client: Redis, about: string): Promise<WatchedMaster> {
    await client.config('SET', 'slowlog-log-slower-than', String(SLOW_US), 'slowlog-max-len', String(KEPT));
    const pid = /process_id:(\d+)/.exec(await client.info('server'))?.[1] ?? '';
    const watched = new WatchedMaster(client, about, isServer(pid) ? pid : undefined);
    await watched.look();
    watched.longest = undefined;
    return watched;
  }

  /** Notes what was slow since the look before. */
  async look(): Promise<void> {
    let entries: SlowEntry[];
    try {
      entries = (await this.client.slowlog('GET', KEPT)) as SlowEntry[];
    } catch {
      // a server that a test has ended; its waiting time starts anew
      this.#waitedNs = undefined;
      return;
    }
    const before = this.#waitedNs;
    this.#waitedNs = this.thread === undefined ? undefined : readWaited(this.thread);
    const waitedMs = before === undefined || this.#waitedNs === undefined ? undefined : (this.#waitedNs - before) / 1e6;
    for (const [id, , us, command] of entries) {
      // ids start anew with the server
      if (id <= this.#last && (entries[0]?.[0] ?? 0) >= this.#last) continue;
      if (command.some((part) => part.includes(this.about))) this.#note(command, us / 1_000, waitedMs);
    }
    this.#last = entries[0]?.[0] ?? this.#last;
  }

  #note([command = '', script = '']: readonly string[], clockMs: number, waitedMs: number | undefined): void {
    const name = command.toLowerCase();
    if (!name.startsWith('eval') && !name.startsWith('fcall')) return;
    const by = scriptNames().get(script) ?? name;
    const ms = Math.max(clockMs - (waitedMs ?? 0), 0);
    this.longest = worst([this.longest, { by, clockMs, ms, isKnown: waitedMs !== undefined }]);
  }
}

/** The event loop of this thread: what comes late tells how long nothing came. */
class WatchedLoop {
  longest: Held | undefined;
  readonly #timer: NodeJS.Timeout;
  #at = performance.now();
  #waitedNs = readWaited('thread-self');

  constructor() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#timer.unref();
  }

  #tick(): void {
    const [now, waited] = [performance.now(), readWaited('thread-self')];
    const clockMs = now - this.#at - TICK_MS;
    const isKnown = waited !== undefined && this.#waitedNs !== undefined;
    const waitedMs = isKnown ? (waited - (this.#waitedNs ?? 0)) / 1e6 : 0;
    [this.#at, this.#waitedNs] = [now, waited];
    this.longest = worst([this.longest, { by: 'event loop', clockMs, ms: Math.max(clockMs - waitedMs, 0), isKnown }]);
  }

  end(): void {
    this.#tick();
    clearInterval(this.#timer);
  }
}

/** Nanoseconds for which the main thread of this process, or `thread-self`, was ready and did not run; `undefined` where nobody tells. */
function readWaited(pid: string): number | undefined {
  try {
    const waited = Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[1]);
    return Number.isFinite(waited) ? waited : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the process of this id on this machine is a server: one of another machine may have the same id. */
function isServer(pid: string): boolean {
  try {
    return /redis|valkey/.test(readFileSync(`/proc/${pid}/comm`, 'utf8'));
  } catch {
    return false;
  }
}
