/** Scenes of which programs consist. Each plays on queues of its own and ends when all is at rest. */
import type { Draft } from './generate.js';
import type { Action, JobPlan, Step } from './program.js';
import { admin, overall } from './administration.js';
import { behind, killed, mixed, shared } from './scenes-apart.js';
import { abandonedGroups, familiesInGroups, inGroups, inOrderOfGroups } from './scenes-of-groups.js';
import { rates, scheduled, scheduledAnew } from './scenes-of-time.js';
import { accepted, FAILURE_OPTIONS, job, jobOpts, sandboxJob, strategy, withoutExtending } from './scripts.js';
import type { Plain } from './values.js';

interface Scene {
  readonly weight: number;
  play(draft: Draft): void;
}

const CONCURRENCY = [1, 2, 3, 5, 10] as const;
const SETTLE: Step = { do: 'settle' };

export const SCENES: readonly Scene[] = [
  { weight: 8, play: handlers },
  { weight: 4, play: stepJobs },
  { weight: 3, play: newLife },
  { weight: 3, play: cancelled },
  { weight: 4, play: byHand },
  { weight: 4, play: flows },
  { weight: 3, play: deduplicated },
  { weight: 5, play: administered },
  { weight: 3, play: inOrder },
  { weight: 2, play: pausedWorker },
  { weight: 3, play: busy },
  { weight: 2, play: abandoned },
  { weight: 2, play: limited },
  { weight: 3, play: rates },
  { weight: 4, play: scheduled },
  { weight: 2, play: scheduledAnew },
  { weight: 2, play: otherTimes },
  { weight: 1, play: sandboxed },
  { weight: 3, play: mixed },
  { weight: 3, play: behind },
  { weight: 2, play: shared },
  { weight: 1, play: killed },
  { weight: 4, play: inGroups },
  { weight: 2, play: familiesInGroups },
  { weight: 3, play: inOrderOfGroups },
  { weight: 1, play: abandonedGroups },
];

function worker(draft: Draft, queue: number, concurrency: number = draft.oneOf(CONCURRENCY)): number {
  const opts: Record<string, Plain> = {};
  if (draft.once(12)) opts.maxStartedAttempts = draft.oneOf([1, 2, 3]);
  return draft.worker({ queue, kind: 'function', concurrency, opts, strategy: strategy(draft) });
}

function addStep(draft: Draft, queue: number, jobs: readonly JobPlan[]): Step {
  return { do: 'add', queue, how: draft.oneOf(['one', 'bulk']), jobs };
}

/** Handlers that do anything there is. */
function handlers(draft: Draft): void {
  const queue = draft.queue();
  const childQueue = draft.once(2) ? queue : draft.queue();
  const start: Step[] = [{ do: 'start', worker: worker(draft, queue) }];
  if (childQueue !== queue) start.push({ do: 'start', worker: worker(draft, childQueue) });
  const jobs = () => draft.times(draft.between(1, 4), () => job(draft, { copies: true, childQueue }));
  const before = draft.once(2);
  if (before) draft.step(...start);
  draft.step(addStep(draft, queue, jobs()));
  if (!before) draft.step(...start);
  draft.step(SETTLE);
  if (draft.once(2)) draft.step(addStep(draft, queue, jobs()), SETTLE);
}

/** Many jobs that move themselves, while the same worker has slots to take them again. */
function stepJobs(draft: Draft): void {
  const queue = draft.queue();
  const childQueue = draft.once(2) ? queue : draft.queue();
  const move = draft.oneOf<Action>([
    { do: 'moveToWait' },
    { do: 'moveToDelayed', ms: 0 },
    { do: 'waitForChildren', queue: childQueue, jobs: [{ key: draft.key() }] },
  ]);
  const work: Action[] = draft.once(2) ? [{ do: 'wait', ms: draft.oneOf([0, 1, 3]) }] : [];
  const plan: JobPlan = {
    key: draft.key(),
    copies: draft.oneOf([5, 20, 50]),
    script: draft.times(draft.between(1, 2), () => [...work, move]),
  };
  draft.step(addStep(draft, queue, [plan]));
  const concurrency = draft.oneOf([2, 5, 10]);
  for (let i = draft.oneOf([1, 1, 2]); i > 0; i--)
    draft.step({ do: 'start', worker: draft.worker({ queue, kind: 'function', concurrency }) });
  if (childQueue !== queue) draft.step({ do: 'start', worker: worker(draft, childQueue) });
  draft.step(SETTLE);
}

/** The queue is obliterated while handlers run; the same ids are then those of other jobs. */
function newLife(draft: Draft): void {
  const queue = draft.queue();
  const [before, after] = [draft.signal(), draft.signal()];
  const n = draft.between(1, 3);
  const ends = (): Action =>
    draft.oneOf<Action>([
      { do: 'return', value: 'of its run' },
      { do: 'throw', what: 'error', text: 'of its run' },
      { do: 'moveToWait' },
      { do: 'moveToDelayed', ms: 30 },
      { do: 'call', method: 'updateProgress', args: [7] },
      { do: 'call', method: 'extendLock', args: ['$token', 10_000] },
    ]);
  const held = (signal: string) =>
    draft.times(n, (): JobPlan => ({ key: draft.key(), script: [[{ do: 'hold', signal }, ends()]] }));
  draft.step({ do: 'start', worker: worker(draft, queue, 2 * n + draft.random.next(3)) });
  draft.step({ do: 'add', queue, how: 'one', jobs: held(before) }, { do: 'held', signal: before, times: n });
  draft.step({ do: 'queue', queue, method: 'obliterate', args: [{ force: true }] });
  draft.step({ do: 'add', queue, how: 'one', jobs: held(after) }, { do: 'held', signal: after, times: n });
  const rest: Step[] = [{ do: 'signal', signal: before }, SETTLE, { do: 'signal', signal: after }, SETTLE];
  draft.step(...(draft.once(4) ? [rest[2], rest[3], rest[0], rest[1]] : rest));
}

function cancelled(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const [key, other] = [draft.key(), draft.key()];
  const ending = draft.oneOf<Action[]>([
    [],
    [{ do: 'throw', what: 'error', text: 'cancelled' }],
    [{ do: 'throw', what: 'unrecoverable', text: 'cancelled' }],
    [{ do: 'moveToWait' }],
    [{ do: 'return', value: 'all the same' }],
  ]);
  const opts: Record<string, Plain> = draft.once(2) ? { attempts: 2 } : {};
  const jobs: JobPlan[] = [
    { key, opts, script: [[{ do: 'untilCancelled' }, ...ending]] },
    { key: other, script: [[{ do: 'hold', signal }]] },
  ];
  draft.step({ do: 'start', worker: worker(draft, queue, 3) }, { do: 'add', queue, how: 'one', jobs });
  draft.step({ do: 'held', signal: 'cancelled', times: 1 }, { do: 'held', signal, times: 1 });
  draft.step({ do: 'cancel', key, ...(draft.once(2) && { reason: 'for a reason' }) });
  if (draft.once(3)) draft.step({ do: 'cancel', key });
  draft.step({ do: 'signal', signal }, SETTLE, { do: 'cancel', key: other });
}

/** Jobs that are taken and ended by hand, with the right token and with wrong ones. */
function byHand(draft: Draft): void {
  const queue = draft.queue();
  const manual = draft.worker({ queue, kind: 'manual', concurrency: 1, strategy: strategy(draft) });
  const plans = draft.times(draft.between(2, 5), (): JobPlan => {
    const opts = jobOpts(draft, { timed: false });
    return { key: draft.key(), opts };
  });
  draft.step(addStep(draft, queue, plans), { do: 'start', worker: manual });
  const hands = ['left', 'right'];
  for (let i = draft.between(4, 14); i > 0; i--) {
    const as = draft.oneOf(hands);
    if (draft.once(3)) draft.step({ do: 'take', worker: manual, as });
    else if (draft.once(8)) draft.step({ do: 'job', key: draft.oneOf(plans).key, ...admin(draft) });
    else draft.step({ do: 'finish', as, ...ended(draft), ...(draft.once(6) && { wrong: true as const }) });
  }
}

function ended(draft: Draft): Pick<Extract<Step, { do: 'finish' }>, 'method' | 'args'> {
  return draft.oneOf<{ method: string; args: Plain[] }>([
    { method: 'moveToCompleted', args: [draft.oneOf<Plain>(['done', 0, null, { a: 1 }]), '$token', false] },
    { method: 'moveToFailed', args: [{ $: 'error:by hand' }, '$token', false] },
    { method: 'moveToWait', args: ['$token'] },
    { method: 'moveToDelayed', args: [{ $: `now:${draft.oneOf([-1_000, 1_000_000])}` }, '$token'] },
    { method: 'moveToWaitingChildren', args: ['$token'] },
    { method: 'extendLock', args: ['$token', 60_000] },
    { method: 'getState', args: [] },
    { method: 'remove', args: [] },
    { method: 'updateProgress', args: [1] },
  ]);
}

/** Whether it, or what it waits for, has a delay. */
const isLate = ({ opts, children = [] }: JobPlan): boolean => opts?.delay !== undefined || children.some(isLate);

/** Trees of up to three levels. Of the children of one parent one may fail. */
function flows(draft: Draft): void {
  const home = draft.queue();
  const queues = [home, ...(draft.once(2) ? [draft.queue()] : [])];
  const tree = (depth: number, mayFail: boolean): JobPlan => {
    const key = draft.key();
    const below = depth > 0 ? draft.between(1, 3) : 0;
    const culprit = draft.random.next(4);
    const all = draft.times(below, (i) => tree(draft.random.next(depth), i === culprit));
    // of those in two queues, or with a delay, either may end first, and whoever goes on at a failure does not wait for the others
    const hasty = queues.length > 1 || all.some(isLate) ? all.filter(({ opts }) => opts?.continueParentOnFailure) : [];
    const children = hasty.length > 0 ? hasty : all;
    const fails = mayFail && draft.once(2);
    // a parent that goes on at a failure may start before its other children have ended, or after
    const certain = children.length > 0 && !children.some(({ opts }) => opts?.continueParentOnFailure);
    const asks: Action[] = certain ? [{ do: 'call', method: 'getDependenciesCount', args: [] }] : [];
    const end: Action[] = fails ? [{ do: 'throw', what: 'error', text: 'in a flow' }] : [];
    const opts: Record<string, Plain> = {};
    if (mayFail) opts[draft.oneOf(FAILURE_OPTIONS)] = true;
    if (draft.once(6)) opts.priority = draft.between(1, 3);
    if (draft.once(8)) opts.delay = draft.oneOf([10, 30]);
    if (draft.once(8)) opts.removeOnComplete = true;
    const script = [[...asks, ...end]];
    return { key, queue: draft.oneOf(queues), opts, ...(children.length > 0 && { children }), script };
  };
  const root = tree(draft.between(1, 3), false);
  const all = (plan: JobPlan): JobPlan[] => [plan, ...(plan.children ?? []).flatMap(all)];
  const nodes = all(root);
  draft.step({ do: 'add', queue: home, how: 'flow', jobs: [root] });
  for (let i = draft.oneOf([0, 0, 1, 2]); i > 0; i--)
    draft.step({ do: 'job', key: draft.oneOf(nodes).key, ...admin(draft) });
  // one slot: which of two children ends first is then no question of luck
  for (const queue of queues) draft.step({ do: 'start', worker: worker(draft, queue, queues.length > 1 ? 1 : 1) });
  draft.step(SETTLE);
  if (draft.once(3)) draft.step({ do: 'job', key: draft.oneOf(nodes).key, ...admin(draft) }, SETTLE);
}

function deduplicated(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const ids = ['one', 'two'];
  const make = (script: Action[][] = []): JobPlan => {
    const deduplication: Record<string, Plain> = { id: draft.oneOf(ids) };
    if (draft.once(4)) deduplication.ttl = 600_000;
    if (draft.once(5)) deduplication.replace = true;
    if (draft.once(5)) deduplication.extend = true;
    if (draft.once(4)) deduplication.keepLastIfActive = true;
    const opts: Record<string, Plain> = { deduplication };
    if (draft.once(4)) opts.delay = draft.oneOf([30, 1_000_000]);
    // with both BullMQ has one job in two states
    if (draft.once(6) && !deduplication.keepLastIfActive) opts.jobId = draft.oneOf(['mine', 'yours']);
    if (draft.once(8)) opts.priority = 2;
    return { key: draft.key(), opts, script };
  };
  const some = () => draft.times(draft.between(1, 4), () => make());
  const add = (jobs: JobPlan[]): Step => ({ do: 'add', queue, how: 'one', jobs });
  draft.step(add(some()));
  if (draft.once(2)) draft.step({ do: 'queue', queue, method: 'getDeduplicationJobId', args: ['one'] });
  if (draft.once(4)) draft.step({ do: 'queue', queue, method: 'removeDeduplicationKey', args: ['one'] }, add(some()));
  // as many slots as there are jobs that are held: none of those added meanwhile starts
  const n = draft.between(1, 2);
  draft.step({ do: 'start', worker: worker(draft, queue, n) }, SETTLE);
  if (draft.once(2)) {
    const held = draft.times(n, (i): JobPlan => {
      const { key, opts } = make();
      const deduplication = { ...(opts?.deduplication as object), id: ids[i] };
      const { jobId: _, ...others } = opts ?? {};
      return { key, opts: { ...others, deduplication, delay: 0 }, script: [[{ do: 'hold', signal }]] };
    });
    // or they are not added, and the slots are free
    draft.step(...ids.map((id): Step => ({ do: 'queue', queue, method: 'removeDeduplicationKey', args: [id] })));
    draft.step(add(held), { do: 'held', signal, times: n }, add(some()), SETTLE, { do: 'signal', signal }, SETTLE);
  }
  draft.step({ do: 'queue', queue, method: 'getDeduplicationJobId', args: ['two'] });
}

/** Jobs that wait for a worker while all sorts of things are done to them. */
function administered(draft: Draft): void {
  const queue = draft.queue();
  const plans = draft.times(draft.between(2, 7), (): JobPlan => {
    const plan = job(draft, { timed: false });
    const opts: Record<string, Plain> = { ...plan.opts };
    if (draft.once(3)) opts.delay = 1_000_000;
    if (draft.once(8)) opts.jobId = `own-${plan.key}`;
    return { ...plan, opts };
  });
  const doSomething = (times: number) => {
    for (let i = times; i > 0; i--) {
      if (draft.once(2)) draft.step({ do: 'job', key: draft.oneOf(plans).key, ...admin(draft) });
      else draft.step({ do: 'queue', queue, ...overall(draft, plans) });
    }
  };
  draft.step(addStep(draft, queue, plans));
  doSomething(draft.between(1, 5));
  draft.step({ do: 'start', worker: worker(draft, queue) }, SETTLE);
  doSomething(1);
  draft.step(SETTLE);
  if (draft.once(2)) {
    doSomething(1);
    draft.step(SETTLE);
  }
}

/** One slot and no clock: the order in which jobs start, and what retention keeps, is settled. */
function inOrder(draft: Draft): void {
  if (draft.steps.length > 0) return administered(draft);
  draft.ordered = true;
  const queue = draft.queue();
  const keep = (): Plain => draft.oneOf<Plain>([{ count: 1 }, { count: 3 }, { count: 0 }, { age: 3_600, count: 2 }]);
  const plans = draft.times(draft.between(3, 9), () => job(draft, { timed: false, alone: true }));
  draft.step(addStep(draft, queue, plans));
  for (let i = draft.oneOf([0, 1, 3]); i > 0; i--)
    draft.step({ do: 'job', key: draft.oneOf(plans).key, ...admin(draft) });
  const opts: Record<string, Plain> = {};
  if (draft.once(2)) opts.removeOnComplete = keep();
  if (draft.once(2)) opts.removeOnFail = keep();
  const index = draft.worker({ queue, kind: 'function', concurrency: 1, opts });
  draft.step({ do: 'start', worker: index }, SETTLE);
  if (draft.once(2)) draft.step({ do: 'queue', queue, method: 'retryJobs', args: [{}] }, SETTLE);
}

/** A worker that is paused, or closed, while it has jobs. */
function pausedWorker(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const first = worker(draft, queue, 2);
  const held = draft.times(2, (): JobPlan => ({ key: draft.key(), script: [[{ do: 'hold', signal }]] }));
  draft.step({ do: 'start', worker: first }, { do: 'add', queue, how: 'one', jobs: held });
  draft.step({ do: 'held', signal, times: 2 });
  const others = draft.times(draft.between(1, 4), () => job(draft));
  if (draft.once(2)) {
    draft.step({ do: 'pauseWorker', worker: first }, addStep(draft, queue, others), { do: 'signal', signal }, SETTLE);
    draft.step({ do: 'resumeWorker', worker: first }, SETTLE);
  } else {
    draft.step(addStep(draft, queue, others), { do: 'queue', queue, method: 'pause', args: [] });
    draft.step({ do: 'signal', signal }, SETTLE, { do: 'queue', queue, method: 'resume', args: [] }, SETTLE);
  }
  draft.step({ do: 'stop', worker: first }, addStep(draft, queue, [job(draft)]));
  draft.step({ do: 'start', worker: worker(draft, queue) }, SETTLE);
}

/** Things are done to jobs, and to their queue, while their handlers run. */
function busy(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const n = draft.between(1, 3);
  const held = draft.times(n, (): JobPlan => {
    const { key, opts, script = [] } = job(draft, { timed: false });
    const [first = [], ...others] = script;
    return { key, opts: accepted(opts), script: [[{ do: 'hold', signal }, ...first], ...others] };
  });
  const others = draft.times(draft.between(0, 3), () => job(draft, { timed: false }));
  draft.step({ do: 'start', worker: worker(draft, queue, n) });
  draft.step({ do: 'add', queue, how: 'one', jobs: held }, { do: 'held', signal, times: n });
  if (others.length > 0) draft.step(addStep(draft, queue, others));
  for (let i = draft.between(1, 5); i > 0; i--) {
    const { key } = draft.oneOf([...held, ...others]);
    if (draft.once(3)) draft.step({ do: 'queue', queue, ...overall(draft, [...held, ...others], false) });
    else draft.step({ do: 'job', key, ...admin(draft) });
  }
  draft.step({ do: 'signal', signal }, SETTLE, { do: 'queue', queue, method: 'resume', args: [] }, SETTLE);
}

/** A worker is gone, with jobs that it ran; another one finds them. Then the old handlers come to their end. */
function abandoned(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const n = draft.between(1, 3);
  const quick = { lockDuration: 400, stalledInterval: 200 };
  const first = draft.worker({ queue, kind: 'function', concurrency: n, opts: quick });
  const opts: Record<string, Plain> = { ...quick, ...(draft.once(2) && { maxStalledCount: draft.between(0, 2) }) };
  const concurrency = draft.oneOf(CONCURRENCY);
  const second = draft.worker({ queue, kind: 'function', concurrency, opts, strategy: strategy(draft) });
  const plans = draft.times(n, (): JobPlan => {
    const { key, opts: own, script } = withoutExtending(job(draft));
    return { key, opts: { ...accepted(own), delay: 0 }, script: [[{ do: 'hold', signal }], ...script] };
  });
  draft.step({ do: 'start', worker: first }, { do: 'add', queue, how: 'one', jobs: plans });
  draft.step({ do: 'held', signal, times: n }, { do: 'stop', worker: first, force: true });
  if (draft.once(2)) draft.step(addStep(draft, queue, [withoutExtending(job(draft))]));
  draft.step({ do: 'start', worker: second });
  draft.step(...(draft.once(2) ? [SETTLE, { do: 'signal', signal } as Step, SETTLE] : [SETTLE]));
}

/** No more than some jobs at a time. */
function limited(draft: Draft): void {
  const queue = draft.queue();
  const limiter = { max: draft.between(1, 4), duration: draft.oneOf([30, 60]) };
  const plans = draft.times(draft.between(2, 6), () => job(draft));
  const opts = { limiter };
  draft.step(addStep(draft, queue, plans));
  const index = draft.worker({ queue, kind: 'function', concurrency: draft.oneOf(CONCURRENCY), opts, strategy: [0] });
  draft.step({ do: 'start', worker: index }, SETTLE);
}

/** The clock is wrong, and leaps: what is due then goes by it. */
function otherTimes(draft: Draft): void {
  if (draft.steps.length > 0) return administered(draft);
  const queue = draft.queue();
  const day = 86_400_000;
  const plans = draft.times(draft.between(1, 4), (): JobPlan => {
    const { key, opts, script } = job(draft);
    return { key, script, opts: { ...opts, ...(draft.once(2) && { delay: draft.oneOf([day, 2 * day, 20]) }) } };
  });
  if (draft.once(2)) draft.step({ do: 'clock', ms: draft.oneOf([1_000 * day, -10_000 * day]) });
  draft.step(addStep(draft, queue, plans), { do: 'start', worker: worker(draft, queue) }, SETTLE);
  for (let i = draft.between(1, 3); i > 0; i--) {
    // a job wakes workers that wait for what is due later
    const woken = addStep(draft, queue, [{ key: draft.key() }]);
    draft.step({ do: 'clock', ms: draft.oneOf([1_000, day, 30 * day]) }, woken, SETTLE);
  }
}

function sandboxed(draft: Draft): void {
  const queue = draft.queue();
  const index = draft.worker({ queue, kind: draft.oneOf(['process', 'thread']), concurrency: draft.oneOf([1, 2, 3]) });
  const jobs = draft.times(draft.between(1, 3), () => sandboxJob(draft));
  draft.step(addStep(draft, queue, jobs), { do: 'start', worker: index }, SETTLE);
}
