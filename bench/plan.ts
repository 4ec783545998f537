/**
 * What a run of the bench does. A run without a budget does all that was asked for. One with a budget does as much of it as ends in time on the machine
 * it is on: how fast both sides are there says what each scenario will take.
 */
import type { BothSides, Mode, Side } from './pairs.js';
import type { Scenario } from './scenarios/scenario.js';

/** Jobs a second that each side adds and runs. */
export type Speeds = BothSides<number>;

export interface Part {
  readonly scenario: Scenario;
  /** Seconds that it is expected to take. Without speeds nothing is expected. */
  readonly takes: number;
}

export interface Plan {
  /** How long the clock of a calibrated run should run. */
  readonly window: number;
  /** Of each scenario; the last ones make do with fewer when time runs out. */
  readonly pairs: number;
  /** All that was asked for, in the order in which it is to be run. */
  readonly parts: readonly Part[];
}

/** What one run has of work and of waiting, beside the window of a calibrated one. */
interface Cost {
  /** The work, in jobs that are added and run. */
  readonly jobs: number;
  /** Seconds of handlers that sleep, pauses and delays: no machine makes them shorter. */
  readonly waits: number;
}

const cost = (jobs: number, waits = 0): Cost => ({ jobs, waits });

/**
 * The scenarios of a quick run, those first that say most about a queue. The costs are measured, by BullMQ's runs on a busy machine and on a quiet one: they need
 * not be exact, since what is left of the time is looked at before each scenario.
 */
const wanted: Readonly<Record<string, Cost>> = {
  'add-tiny': cost(500),
  'add-bulk-50': cost(1_000),
  'worker-100-keep': cost(2_000),
  'worker-1-keep': cost(2_000),
  'waiting-20-50': cost(2_000, 0.6),
  retry: cost(5_000),
  delayed: cost(2_000, 0.5),
  latency: cost(1_000, 1.3),
  trickle: cost(1_000, 0.4),
  'memory-completed': cost(20_000, 0.6),
  'waiting-5-1': cost(1_000, 1.1),
  'schedulers-without': cost(3_000, 1.8),
  'add-nested': cost(500),
  flow: cost(28_000),
  'add-in-flight': cost(1_000),
  priority: cost(1_500),
  'cpu-1000us': cost(1_000, 0.6),
  'worker-100-remove': cost(2_000),
  'worker-1-remove': cost(2_000),
  'busy-loop': cost(500),
  'trickle-20': cost(1_000, 0.4),
  'waiting-20-20': cost(1_000, 0.6),
  'cpu-50us': cost(1_500),
  'add-bulk-1000': cost(3_000),
  schedulers: cost(3_000, 1.6),
  'waiting-100-100': cost(2_000, 1.7),
  'memory-waiting': cost(10_000, 0.6),
  'memory-delayed': cost(10_000, 0.6),
  'get-waiting': cost(12_000, 0.8),
  'get-delayed': cost(15_000, 0.8),
  'get-completed': cost(26_000, 0.8),
};
const names = Object.keys(wanted);
/** Of one that is run only when it is named. */
const unknown = cost(5_000, 1);

/** Connections, queues and keys of a run, in jobs of the base. */
const OPENING_JOBS = 100;
/** The calibration of a side takes as many of its runs, and as much of their work: what has much work has one probe. */
const CALIBRATION = { calibrated: { runs: 2.5, work: 1.2 }, fixed: { runs: 0.4, work: 0.4 } } as const;
/**
 * The first of these for which there is time is the plan: so many of the scenarios, a part of the mode's window, and pairs. It takes two to show a spread. What there
 * is time for beyond it is more scenarios.
 */
const HEADLINES = 12;
const ROOM = [
  { scenarios: Infinity, part: 1, pairs: Infinity },
  { scenarios: HEADLINES, part: 1, pairs: 2 },
  { scenarios: HEADLINES, part: 0.6, pairs: 2 },
  { scenarios: HEADLINES, part: 0.4, pairs: 2 },
  { scenarios: 0, part: 0.4, pairs: 1 },
] as const;

/** @param seconds that there are for it, which matter where the speeds are known */
export function planOf(asked: readonly Scenario[], mode: Mode, speeds?: Speeds, seconds = mode.budgetSeconds): Plan {
  const { seconds: window, rounds } = mode;
  if (!speeds) return { window, pairs: rounds, parts: asked.map((scenario) => ({ scenario, takes: 0 })) };
  const ordered = byImportance(asked);
  const planIn = (room: (typeof ROOM)[number]): Plan => {
    const size = { window: window * room.part, pairs: Math.min(room.pairs, rounds) };
    return { ...size, parts: ordered.map((scenario) => ({ scenario, takes: secondsOf(scenario, speeds, size) })) };
  };
  const fits = (room: (typeof ROOM)[number]) => secondsFor(planIn(room).parts.slice(0, room.scenarios)) <= seconds;
  return planIn(ROOM.find(fits) ?? ROOM[ROOM.length - 1]);
}

/** Those that end in time, run in order: where one takes too long, others after it may not. */
export function fitting(parts: readonly Part[], seconds: number): Part[] {
  let left = seconds;
  return parts.filter(({ takes }) => {
    if (takes > left) return false;
    left -= takes;
    return true;
  });
}

function secondsFor(parts: readonly Part[]): number {
  return parts.reduce((sum, { takes }) => sum + takes, 0);
}

/** How fast both sides are here, and what that leaves time for. */
export function wordsOf(
  { window, pairs, parts }: Plan,
  speeds: Speeds,
  libraries: BothSides<{ name: string }>,
  seconds: number,
): string {
  const rate = (side: Side) => `${libraries[side].name} ${Number(speeds[side].toPrecision(2)).toLocaleString('en-US')}`;
  const count = fitting(parts, seconds).length;
  return `jobs a second added and run here: ${rate('base')}, ${rate('challenger')}. In ${Math.round(seconds)} s there is time for ${count} of ${parts.length} scenarios, in ${pairs === 1 ? 'one pair' : `${pairs} pairs`} each, ${window} s a clock.`;
}

/** Those that are run only when they are named come last, as they come. */
function byImportance(scenarios: readonly Scenario[]): Scenario[] {
  const place = ({ name }: Scenario) => (names.includes(name) ? names.indexOf(name) : names.length);
  return [...scenarios].sort((a, b) => place(a) - place(b));
}

function secondsOf(scenario: Scenario, speeds: Speeds, { window, pairs }: Omit<Plan, 'parts'>): number {
  const { name, size } = scenario;
  const { jobs, waits } = wanted[name] ?? cost(unknown.jobs, scenario.waits ?? unknown.waits);
  const { runs, work } = CALIBRATION[size.kind];
  const each = OPENING_JOBS / speeds.base + (size.kind === 'calibrated' ? window : 0);
  const secondsAt = (speed: number) => (runs + pairs) * each + (work + pairs) * (waits + jobs / speed);
  return secondsAt(speeds.base) + secondsAt(speeds.challenger);
}
