/** Counts over several runs: what disturbs a run, a busy machine above all, adds to its counts or leaves them as they are. */
import { randomBytes } from 'node:crypto';
import { count } from './count.js';
import type { Counter, Counts } from './count.js';
import { Ground } from './ground.js';
import { countObjects, keptObjects } from './objects.js';
import { countedScenarios } from './scenarios.js';

/** Runs until a figure is believed to be that large. */
const MOST_RUNS = 8;

export interface Countable {
  readonly name: string;
  /** What it stands for. */
  readonly about: string;
  run(): Promise<Counts>;
}

/** Of the scenarios, those that are counted over TLS as well: one of each kind, and none in which calls of one tick may go in one request or in two. */
const OVER_TLS = ['add', 'trickle', 'trickle-10kb', 'trickle-retry', 'batch-remove'];

export function countables(counter: Counter): Countable[] {
  const scenarios = countedScenarios.map((scenario) => {
    const { name, about } = scenario;
    return { name, about, run: () => count(counter, scenario) };
  });
  const secure = { ...counter, proxy: counter.secureProxy };
  const overTls = countedScenarios
    .filter(({ name }) => OVER_TLS.includes(name))
    .map((scenario) => ({
      name: `tls-${scenario.name}`,
      about: `over TLS: ${scenario.about}`,
      run: () => count(secure, scenario),
    }));
  const objects = keptObjects.map((kept) => ({
    name: kept.name,
    about: kept.about,
    async run() {
      const queueName = `counts-${kept.name}-${randomBytes(4).toString('hex')}`;
      const ground = new Ground(counter.classes, counter.proxy, queueName);
      const counts = await countObjects(ground, kept);
      await ground.close();
      await counter.server.sweep(queueName);
      return counts;
    },
  }));
  return [...scenarios, ...overTls, ...objects];
}

/** The least of each figure; runs until `isEnough` says so, a few times at most. */
export async function leastOf(
  { run }: Omit<Countable, 'about'>,
  isEnough: (counts: Counts) => boolean,
): Promise<Counts> {
  let least = await run();
  for (let runs = 1; runs < MOST_RUNS && !isEnough(least); runs += 1) least = leastOfTwo(least, await run());
  return least;
}

/** A figure that only one of them has is 0 in the other. */
export function leastOfTwo(one: Counts, other: Counts): Counts {
  const both = Object.keys(one).filter((name) => name in other);
  return Object.fromEntries(both.map((name) => [name, Math.min(one[name] ?? 0, other[name] ?? 0)]));
}

/** The figure that most runs had, and the names of those that few runs agree on. */
export function mostCommon(runs: readonly Counts[]): { readonly counts: Counts; readonly doubtful: readonly string[] } {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run)))];
  const found = names.map((name) => {
    const times = new Map<number, number>();
    for (const run of runs) times.set(run[name] ?? 0, (times.get(run[name] ?? 0) ?? 0) + 1);
    // of two that are as common, the smaller
    const [[figure, seen] = [0, 0]] = [...times].sort(([a, seenA], [b, seenB]) => seenB - seenA || a - b);
    return { name, figure, isDoubtful: seen * 2 <= runs.length };
  });
  return {
    counts: Object.fromEntries(found.filter(({ figure }) => figure > 0).map(({ name, figure }) => [name, figure])),
    doubtful: found.filter(({ isDoubtful }) => isDoubtful).map(({ name }) => name),
  };
}
