/**
 * A program from a seed. It consists of scenes (scenes.ts), each of which ends when all is at rest, so that no step races with what
 * a worker does: where two libraries, or two runs of one, may rightly differ, there is nothing to compare.
 */
import { Random } from '../support/random.js';
import type { Program, Step, WorkerPlan } from './program.js';
import { SCENES } from './scenes.js';

export class Draft {
  readonly workers: WorkerPlan[] = [];
  readonly steps: Step[] = [];
  ordered = false;
  #keys = 0;
  #signals = 0;

  constructor(readonly random: Random) {}

  queues = 0;

  /** One more queue. */
  queue(): number {
    return this.queues++;
  }

  worker(plan: WorkerPlan): number {
    return this.workers.push(plan) - 1;
  }

  step(...steps: Step[]): void {
    this.steps.push(...steps);
  }

  key(): string {
    return `j${++this.#keys}`;
  }

  signal(): string {
    return `s${++this.#signals}`;
  }

  // What is drawn.

  /** True once in `n`. */
  once(n: number): boolean {
    return this.random.next(n) === 0;
  }

  oneOf<T>(list: readonly T[]): T {
    return list[this.random.next(list.length)];
  }

  between(low: number, high: number): number {
    return low + this.random.next(high - low + 1);
  }

  times<T>(n: number, make: (i: number) => T): T[] {
    return Array.from({ length: n }, (_, i) => make(i));
  }
}

/** @param only names of the scenes that it may consist of; empty: all */
export function generate(seed: number, only: readonly string[] = []): Program {
  const random = new Random(seed);
  // neighbouring seeds begin alike
  for (let i = 0; i < 5; i++) random.next(2);
  const draft = new Draft(random);
  for (const scene of draft.times(draft.oneOf([1, 1, 2, 3]), () => pick(draft, only))) {
    scene(draft);
    if (draft.ordered) break;
  }
  const { queues, workers, steps, ordered } = draft;
  return tamed({ name: `seed ${seed}`, queues, workers, steps, ...(ordered && { ordered }) });
}

/**
 * A job whose handler throws null stays active in BullMQ. Where that would tell on other jobs, because they stand in the waiting list behind it, share a global
 * concurrency or cannot be obliterated, it throws an error instead.
 */
function tamed(program: Program): Program {
  const tells = program.steps.some(
    (step) =>
      step.do === 'queue' &&
      (step.method === 'setGlobalConcurrency' || (step.method === 'obliterate' && !isForced(step.args))),
  );
  if (!tells && !program.ordered) return program;
  return JSON.parse(JSON.stringify(program), (_, value: unknown) => {
    const { do: kind, what } = Object(value) as { do?: string; what?: string };
    const isSuch = kind === 'throw' && ['null', 'undefined', 'nullMessage'].includes(what ?? '');
    return isSuch ? { ...(value as object), what: 'error' } : value;
  }) as Program;
}

const isForced = ([opts]: readonly unknown[]): boolean => Boolean((opts as { force?: boolean } | undefined)?.force);

function pick(draft: Draft, only: readonly string[]) {
  const scenes = SCENES.filter(({ play }) => only.length === 0 || only.includes(play.name));
  const total = scenes.reduce((sum, { weight }) => sum + weight, 0);
  let at = draft.random.next(total);
  for (const { weight, play } of scenes) {
    if (at < weight) return play;
    at -= weight;
  }
  return scenes[0].play;
}
