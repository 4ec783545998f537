/** Handlers of mixed length in several worker processes: whether a job waits for another's handler while a worker that could run it has nothing to do. */
import type { Scenario } from '../scenario.js';
import { roundsScenario } from './rounds.js';
import type { Rounds } from './rounds.js';
import { steadyScenario } from './steady.js';
import type { Members, Work } from './team.js';

const quick: Work = {};
const times = (count: number, work: Work): Work[] => Array.from({ length: count }, () => work);
const on = ({ workers, concurrency }: Members) => `${workers} processes, concurrency ${concurrency}`;

type Kind = Pick<Rounds, 'concurrency' | 'isCold'>;
const suffix = ({ concurrency, isCold }: Kind) => (isCold ? '-cold' : `-${concurrency}`);

/** Two idle workers are given a job that takes a second and one that takes no time. */
function pair(slow: Work, name: string, word: string, { concurrency, isCold = false }: Kind): Scenario {
  const members = { workers: 2, concurrency };
  return roundsScenario({
    ...members,
    name: `mixed-${name}${suffix({ concurrency, isCold })}`,
    title: `a quick job beside one that ${word} 1 s, ${on(members)}`,
    metrics: isCold ? ['latencyP50Ms'] : ['latencyP50Ms', 'latencyP99Ms'],
    isCold,
    rounds: 3,
    works: [slow, quick],
    measured: 1,
  });
}

/** The last jobs of a backlog, behind one that takes a second: how long after its start they start. */
function behind(concurrency: number): Scenario {
  const members = { workers: 2, concurrency };
  return roundsScenario({
    ...members,
    name: `mixed-behind-${concurrency}`,
    title: `30 quick jobs behind 600 and one that blocks 1 s, ${on(members)}`,
    metrics: ['latencyLastMs', 'latencyP50Ms', 'latencyP99Ms'],
    rounds: 3,
    works: [...times(600, quick), { blocks: 1_000 }, ...times(30, quick)],
    measured: 30,
    areBehindIt: true,
  });
}

/** As many jobs that take a second of CPU as there are idle workers. */
function cpu(concurrency: number): Scenario {
  const members = { workers: 4, concurrency };
  return roundsScenario({
    ...members,
    name: `mixed-cpu-${concurrency}`,
    title: `4 jobs that block 1 s, ${on(members)}`,
    metrics: ['burstMs', 'busiestJobs'],
    rounds: 3,
    works: times(4, { blocks: 1_000 }),
  });
}

/** As many jobs that await 50 ms as there are idle workers. */
function spread(concurrency: number): Scenario {
  const members = { workers: 4, concurrency };
  return roundsScenario({
    ...members,
    name: `mixed-spread-${concurrency}`,
    title: `4 jobs that await 50 ms, ${on(members)}`,
    metrics: ['latencyLastMs', 'busiestJobs', 'burstMs'],
    rounds: 8,
    works: times(4, { waits: 50 }),
  });
}

/** More jobs that await 45 ms than idle workers run at once. */
function burst(jobs: number, { concurrency, isCold = false }: Kind): Scenario {
  const members = { workers: 8, concurrency };
  return roundsScenario({
    ...members,
    name: `mixed-burst${suffix({ concurrency, isCold })}`,
    title: `${jobs} jobs that await 45 ms, ${on(members)}`,
    metrics: ['burstMs', 'latencyP50Ms', 'latencyP99Ms', 'latencyP999Ms'],
    isCold,
    rounds: 3,
    works: times(jobs, { waits: 45 }),
  });
}

/** A load at which a worker is idle nearly always. */
function steady(slow: Work, name: string, words: string, stream: Stream): Scenario {
  const { concurrency, oneIn, together } = stream;
  const members = { workers: 4, concurrency };
  return steadyScenario({
    ...members,
    name: `mixed-steady-${name}-${concurrency}`,
    title: `one job in ${oneIn} ${words}, ${together === 1 ? 'one' : together} a call, ${on(members)}`,
    ...stream,
    slow,
  });
}

interface Stream {
  readonly concurrency: number;
  readonly oneIn: number;
  readonly together: number;
  readonly jobs: number;
}

const [often, seldom] = [
  { oneIn: 20, together: 10, jobs: 480 },
  { oneIn: 100, together: 10, jobs: 300 },
];
const slots = [1, 5, 50];

export const mixedScenarios: readonly Scenario[] = [
  ...slots.map((concurrency) => pair({ blocks: 1_000 }, 'pair', 'blocks', { concurrency })),
  pair({ blocks: 1_000 }, 'pair', 'blocks', { concurrency: 1, isCold: true }),
  pair({ waits: 1_000 }, 'pair-async', 'awaits', { concurrency: 1 }),
  behind(1),
  ...slots.map((concurrency) => steady({ blocks: 100 }, '100ms', 'blocks 100 ms', { ...often, concurrency })),
  steady({ blocks: 100 }, 'single', 'blocks 100 ms', { ...often, concurrency: 1, together: 1 }),
  steady({ waits: 100 }, 'async', 'awaits 100 ms', { ...often, concurrency: 1 }),
  steady({ blocks: 1_500 }, '1500ms', 'blocks 1.5 s', { ...seldom, concurrency: 1 }),
  cpu(1),
  spread(1),
  burst(64, { concurrency: 1 }),
  burst(320, { concurrency: 5 }),
  burst(800, { concurrency: 50 }),
  burst(64, { concurrency: 1, isCold: true }),
];
