/**
 * A steady stream of jobs, of which one in so many is slow: it blocks its event loop, or awaits a timer. The rest have nothing to do. They are added a few in a call, at their
 * times, whether or not those before are done. Gaps, and which jobs are slow, are by chance, and the same for both sides of a pair; the rate is that at which the slow jobs keep an
 * eighth of the workers busy. The workers are warm. A wait is from just before the call that adds a job to the first line of the handler.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sample } from '../../measure.js';
import type { Stage } from '../../stage.js';
import { randomFrom } from '../../statistics.js';
import { clockOfMachine } from '../../worker-process.js';
import type { Scenario } from '../scenario.js';
import { latencies, STARTS_S } from './rounds.js';
import { Team } from './team.js';
import type { Members, Work } from './team.js';

/** Part of the workers that is busy. */
const LOAD = 0.12;

export interface Stream extends Members {
  readonly name: string;
  readonly title: string;
  readonly slow: Work;
  /** One job in so many is slow. */
  readonly oneIn: number;
  /** Jobs that one call adds. */
  readonly together: number;
  readonly jobs: number;
}

export function steadyScenario({ name, title, jobs, ...stream }: Stream): Scenario {
  const quick = Math.ceil(jobs / 4);
  return {
    name,
    title,
    // the first is what a row is about
    metrics: ['latencyP99Ms', 'latencyP999Ms', 'latencyP90Ms', 'latencyP50Ms'],
    size: { kind: 'fixed', full: jobs, quick },
    isLong: true,
    isOfPlainBase: true,
    waits: stream.workers * STARTS_S + (quick * meanGapMs(stream)) / 1e3,
    run: (stage, count) => run(stage, count, stream),
  };
}

type Flow = Omit<Stream, 'name' | 'title' | 'jobs'>;

async function run(stage: Stage, count: number, stream: Flow): Promise<Sample> {
  const team = await Team.open(stage, stream);
  await team.warmUp();
  await team.fallAsleep();
  const calls = callsOf(count, stream, stage.seed);
  const adds: Promise<number[]>[] = [];
  const begin = clockOfMachine();
  for (const { at, works } of calls) {
    const early = begin + at - clockOfMachine();
    if (early > 0) await sleep(early);
    adds.push(team.add(works));
  }
  const measured = (await Promise.all(adds)).flat();
  const seconds = ((await team.done()) - begin) / 1e3;
  const starts = await team.account();
  const waits = measured.map((i) => starts[i].startedAt - starts[i].addedAt);
  return { jobs: count, seconds, values: latencies(waits) };
}

interface Call {
  /** Milliseconds from the start. */
  readonly at: number;
  readonly works: readonly Work[];
}

/** As many jobs as asked for, as by callers who know nothing of each other. Of each so many jobs one is slow, whichever. */
export function callsOf(count: number, flow: Flow, seed: number): Call[] {
  const { slow, oneIn, together } = flow;
  const random = randomFrom(seed);
  let [at, slowOne] = [0, 0];
  const works = Array.from({ length: count }, (_, k): Work => {
    if (k % oneIn === 0) slowOne = k + Math.floor(random() * Math.min(oneIn, count - k));
    return k === slowOne ? slow : {};
  });
  return Array.from({ length: Math.ceil(count / together) }, (_, call) => {
    at -= Math.log(1 - random()) * meanGapMs(flow) * together;
    return { at, works: works.slice(call * together, (call + 1) * together) };
  });
}

/** Between two jobs. */
function meanGapMs({ workers, slow: { blocks = 0, waits = 0 }, oneIn }: Flow): number {
  return (blocks + waits) / oneIn / (workers * LOAD);
}
