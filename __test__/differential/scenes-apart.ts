/**
 * Scenes of several workers of a queue, each in a process of its own, whose handlers are of mixed length. Which of them runs a job, and in which order, is a
 * question of luck: what becomes of the job is none.
 */
import { admin, overall } from './administration.js';
import type { Draft } from './generate.js';
import type { Action, JobPlan, Step } from './program.js';
import { accepted, job, withoutExtending } from './scripts.js';
import type { Plain, Thrown } from './values.js';

const CONCURRENCY = [1, 1, 2, 5] as const;
const SETTLE: Step = { do: 'settle' };
/** Short, and yet none who lives loses its jobs where two cores have many processes to run. */
const QUICK = { lockDuration: 1_000, stalledInterval: 300 };

interface Team {
  readonly concurrency?: number;
  readonly opts?: Record<string, Plain>;
}

/** So many workers of a queue. */
function team(draft: Draft, queue: number, count: number, { concurrency, opts = {} }: Team = {}): number[] {
  const gives = [draft.oneOf([0, 10, 30])];
  return draft.times(count, () =>
    draft.worker({
      ...{ queue, kind: 'apart', opts, strategy: gives },
      concurrency: concurrency ?? draft.oneOf(CONCURRENCY),
    }),
  );
}

const started = (workers: readonly number[]): Step[] => workers.map((worker) => ({ do: 'start', worker }));

/** What a handler takes before it does anything else. */
function length(draft: Draft): Action[] {
  return draft.oneOf<Action[]>([
    [],
    [],
    [{ do: 'block', ms: draft.oneOf([2, 10, 60, 120]) }],
    [{ do: 'wait', ms: draft.oneOf([2, 10, 60, 120]) }],
    [
      { do: 'wait', ms: draft.oneOf([0, 5]) },
      { do: 'block', ms: draft.oneOf([5, 20]) },
    ],
  ]);
}

/** With any of the others, or options that are spoilt, a job may be active for good, and its queue never at rest: other scenes have them. */
const THROWN: readonly Thrown[] = ['error', 'unrecoverable', 'named', 'text', 'object', 'circular', 'longMessage'];

/** A job that comes to an end, whatever it does. */
export function ending(draft: Draft, childQueue = -1, timed = true): JobPlan & { readonly script: Action[][] } {
  const { script = [], ...plan } = job(draft, { childQueue, timed });
  const isOdd = (action: Action) => action.do === 'throw' && !THROWN.includes(action.what);
  const tame = (action: Action): Action => (isOdd(action) ? { do: 'throw', what: 'error', text: 'odd' } : action);
  return { ...plan, script: script.map((run) => run.filter((action) => action.do !== 'setOpts').map(tame)) };
}

/** One that takes its time. */
function longer(draft: Draft, childQueue: number): JobPlan {
  const { script, ...plan } = ending(draft, childQueue);
  return {
    ...plan,
    ...(draft.once(3) && { copies: draft.oneOf([2, 5, 12]) }),
    script: (script.length > 0 ? script : [[]]).map((run) => [...length(draft), ...run]),
  };
}

/** Jobs with nothing to them, by which workers learn how short handlers are. */
const quick = (draft: Draft): JobPlan => ({ key: draft.key(), copies: draft.oneOf([5, 30, 80]) });

/** Jobs whose results are large, of all lengths. */
function large(draft: Draft): JobPlan {
  const value = { $: `long:${draft.oneOf([20_000, 100_000])}` };
  return {
    key: draft.key(),
    copies: draft.oneOf([3, 8]),
    script: [[...length(draft), { do: 'return', value }]],
  };
}

/** Jobs that keep their worker, or a slot of it, for long beside others. */
const long = (draft: Draft): JobPlan => ({
  key: draft.key(),
  copies: draft.between(1, 2),
  script: [[{ do: draft.oneOf(['block', 'block', 'wait']), ms: draft.oneOf([150, 250]) }]],
});

/** Handlers that do anything there is, and take all kinds of time; a worker may leave meanwhile. */
export function mixed(draft: Draft): void {
  const queue = draft.queue();
  const childQueue = draft.oneOf([-1, queue, draft.once(2) ? draft.queue() : queue]);
  const workers = team(draft, queue, draft.oneOf([2, 2, 3]));
  const start = started(workers);
  if (childQueue >= 0 && childQueue !== queue) start.push(...started(team(draft, childQueue, 1)));
  const jobs = (): JobPlan[] =>
    draft.times(draft.between(1, 4), () => {
      const [any, few] = [draft.random.next(6), draft.once(2)];
      if (any === 0) return few ? large(draft) : quick(draft);
      return any === 1 ? long(draft) : longer(draft, childQueue);
    });
  const add = (plans: JobPlan[]): Step => ({
    do: 'add',
    queue,
    how: draft.oneOf(['one', 'bulk', 'bulk']),
    jobs: plans,
  });
  const before = draft.once(4);
  if (before) draft.step(add(jobs()));
  draft.step(...start, SETTLE);
  if (draft.once(2)) draft.step(add([quick(draft)]), SETTLE);
  draft.step(add(jobs()));
  // those that are left run the rest
  if (draft.once(3)) draft.step({ do: 'stop', worker: workers[0] });
  draft.step(SETTLE);
  if (draft.once(2)) draft.step(add([...jobs(), { key: draft.key(), copies: 5 }]), SETTLE);
}

/** Workers that have run hundreds of short jobs are given some that are long, and short ones with them: who is idle runs those (watch.ts). */
export function behind(draft: Draft): void {
  const queue = draft.queue();
  const workers = team(draft, queue, draft.oneOf([2, 2, 3]), { concurrency: draft.oneOf([1, 1, 5]) });
  const add = (...jobs: JobPlan[]): Step => ({ do: 'add', queue, how: 'bulk', jobs });
  draft.step(...started(workers), add({ key: draft.key(), copies: 150 }), SETTLE);
  for (let i = draft.between(2, 4); i > 0; i--) {
    const before = draft.once(3) ? [quick(draft)] : [];
    draft.step(add(...before, long(draft), { key: draft.key(), copies: draft.oneOf([1, 5, 20]) }), SETTLE);
  }
}

/** Things are done to jobs, and to their queue, while all slots of several workers are taken. */
export function shared(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const [count, concurrency] = [draft.oneOf([2, 2, 3]), draft.oneOf([1, 2])];
  const held = draft.times(count * concurrency, (): JobPlan => {
    const { key, opts, script } = ending(draft, -1, false);
    const [first = [], ...others] = script;
    return { key, opts: accepted(opts), script: [[{ do: 'hold', signal }, ...length(draft), ...first], ...others] };
  });
  const others = draft.times(draft.between(0, 3), () => ending(draft, -1, false));
  draft.step(...started(team(draft, queue, count, { concurrency })));
  if (draft.once(2)) draft.step({ do: 'add', queue, how: 'bulk', jobs: [quick(draft)] }, SETTLE);
  draft.step({ do: 'add', queue, how: draft.oneOf(['one', 'bulk']), jobs: held });
  draft.step({ do: 'held', signal, times: held.length });
  if (others.length > 0) draft.step({ do: 'add', queue, how: 'bulk', jobs: others });
  for (let i = draft.between(1, 5); i > 0; i--) {
    const { key } = draft.oneOf([...held, ...others]);
    if (draft.once(3)) draft.step({ do: 'queue', queue, ...overall(draft, [...held, ...others], false) });
    else draft.step({ do: 'job', key, ...admin(draft) });
  }
  draft.step({ do: 'signal', signal }, SETTLE, { do: 'queue', queue, method: 'resume', args: [] }, SETTLE);
}

/** The process of a worker whose slots are all taken is killed: others find what it ran, and run what waited behind that. */
export function killed(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const concurrency = draft.oneOf(CONCURRENCY);
  const opts: Record<string, Plain> = { ...QUICK, ...(draft.once(2) && { maxStalledCount: draft.between(0, 2) }) };
  const [first] = team(draft, queue, 1, { concurrency, opts });
  const rest = team(draft, queue, draft.between(1, 2), { opts });
  const some = (n: number, before: Action[]) =>
    draft.times(n, (): JobPlan => {
      const { key, opts: own, script } = withoutExtending(ending(draft));
      const [run = [], ...more] = script;
      return {
        key,
        opts: { ...accepted(own), ...(before.length > 0 && { delay: 0 }) },
        script: [[...before, ...run], ...more.map((then) => [...length(draft), ...then])],
      };
    });
  draft.step(...started([first]));
  if (draft.once(2)) draft.step({ do: 'add', queue, how: 'bulk', jobs: [quick(draft)] }, SETTLE);
  draft.step({
    do: 'add',
    queue,
    how: draft.oneOf(['one', 'bulk']),
    jobs: some(concurrency, [{ do: 'hold', signal }]),
  });
  draft.step({ do: 'held', signal, times: concurrency });
  // others may be there, or come
  const early = draft.once(2);
  if (early) draft.step(...started(rest));
  else if (draft.once(2))
    draft.step({ do: 'add', queue, how: 'bulk', jobs: [...some(2, []), { key: draft.key(), copies: 4 }] });
  draft.step({ do: 'kill', worker: first });
  if (!early) draft.step(...started(rest));
  draft.step(SETTLE, { do: 'signal', signal }, SETTLE);
}
