/** Two builds on one Redis, in one process. */
import { randomBytes } from 'node:crypto';
import { pathToFileURL } from 'node:url';
import { loadBuild } from '../adapters/chasquimq.js';
import type { JobLibrary } from '../adapters/library.js';
import { interruption, messageOf, UsageError } from '../ending.js';
import type { Bench } from '../pairs.js';
import type { Progress } from '../screen.js';
import { Servers } from '../regimes.js';
import type { Server } from '../server.js';
import { copyOf } from './builds.js';

/** Short runs, and more of them: what disturbs one of them then disturbs little. */
const MODE = { quick: false, seconds: 0.5, rounds: 0, timeLimitMs: 60_000, budgetSeconds: Infinity };

export async function loadPath(name: string, path: string): Promise<JobLibrary> {
  return loadBuild(name, name, pathToFileURL(path).href).catch((error: unknown) => {
    throw new UsageError(`${name}: ${messageOf(error)}`);
  });
}

/**
 * The library that a process loads first is a tenth or more ahead of those that come after it, whatever they are: so the first is neither of the two that
 * are compared, but a copy of one.
 */
export function loadFirst(path: string): Promise<JobLibrary> {
  return loadPath('a copy of the base', copyOf(path));
}

/** Makes what pairs of runs are made with. One a process: it listens for signals. */
export function ringOf(server: Server, progress: Progress): (base: JobLibrary, challenger: JobLibrary) => Bench {
  const servers = new Servers(server);
  const mark = `chasqui-gate-${randomBytes(4).toString('hex')}`;
  const interrupted = interruption();
  return (base, challenger) => ({
    libraries: { base, challenger },
    server,
    serverOf: (regime) => servers.of(regime),
    mark,
    mode: MODE,
    observer: {
      say: (line) => progress.say(line),
      planned: () => undefined,
      step: (scenario, part, doing) => progress.step(scenario, part, doing),
      done: () => undefined,
    },
    interrupted,
    ownsServer: process.env.BENCH_OWNS_REDIS === '1',
  });
}
