/** Scenes of schedulers and rate limits. What is due is due at once or not for hours, so that nothing depends on when it is looked at. */
import type { Draft } from './generate.js';
import type { JobPlan, Step } from './program.js';
import type { Plain } from './values.js';

type Call = Pick<Extract<Step, { do: 'queue' }>, 'method' | 'args'>;

const HOUR_MS = 3_600_000;
const IDS = ['one', 'two'];
/** Of schedulers that are due soon: one that was due by the hour before keeps an offset, by which a machine that is late is an hour late. */
const SOON_ID = 'soon';
const ALL_IDS = [...IDS, SOON_ID];
const SETTLE: Step = { do: 'settle' };

/** When a scheduler makes jobs. What is due soon has a limit, or the queue would never be at rest. */
function repeat(draft: Draft, often: boolean): Record<string, Plain> {
  const by = draft.oneOf<Record<string, Plain>>(
    often
      ? [
          { every: 40, limit: draft.between(1, 3) },
          { pattern: '* * * * * *', limit: draft.between(1, 2) },
        ]
      : [{ every: HOUR_MS }, { every: HOUR_MS }, { pattern: '0 0 1 1 *' }, { pattern: '0 0 1 1 *', tz: 'Asia/Tokyo' }],
  );
  const more: Record<string, Plain> = {};
  if (draft.once(4)) more.limit = draft.between(1, 3);
  if (draft.once(6)) more.startDate = { $: `now:${draft.oneOf([-HOUR_MS, 50 * HOUR_MS])}` };
  if (draft.once(6)) more.endDate = { $: `now:${draft.oneOf([-HOUR_MS, 100 * HOUR_MS, 20_000 * HOUR_MS])}` };
  if (draft.once(10)) more.immediately = true;
  if (draft.once(25))
    return draft.oneOf<Record<string, Plain>>([{}, { every: HOUR_MS, pattern: '0 0 1 1 *' }, { pattern: 'no' }]);
  return { ...more, ...by };
}

function iteration(draft: Draft): JobPlan {
  const opts: Record<string, Plain> = {};
  if (draft.once(5)) opts.priority = draft.between(1, 3);
  if (draft.once(6)) opts.removeOnComplete = true;
  if (draft.once(6)) opts.attempts = 2;
  const fails = draft.once(6);
  return { key: draft.key(), opts, ...(fails && { script: [[{ do: 'throw', what: 'error', text: 'in time' }]] }) };
}

/** Of `id`, while a job runs: then nothing becomes due. Of any scheduler otherwise. */
function upsert(draft: Draft, queue: number, id?: string): Step {
  const often = id === undefined && draft.once(3);
  return {
    ...{ do: 'schedule', queue, id: id ?? (often ? SOON_ID : draft.oneOf(IDS)) },
    repeat: repeat(draft, often),
    job: iteration(draft),
  };
}

function change(draft: Draft, queue: number, only?: string): Step {
  if (draft.once(2)) return upsert(draft, queue, only);
  const id = only ?? draft.oneOf(ALL_IDS);
  const call = draft.oneOf<Call>([
    { method: 'removeJobScheduler', args: [id] },
    { method: 'removeJobScheduler', args: [id] },
    { method: 'getJobScheduler', args: [id] },
    { method: 'getJobSchedulers', args: [0, -1, draft.oneOf([true, false])] },
    { method: 'getJobSchedulersCount', args: [] },
    { method: 'getJobCounts', args: [] },
    { method: 'promoteJobs', args: [] },
    { method: 'drain', args: [draft.oneOf([true, false])] },
    { method: 'clean', args: [0, 100, 'delayed'] },
  ]);
  return { do: 'queue', queue, ...call };
}

const schedulersOf = (queue: number): Step => ({
  ...{ do: 'queue', queue, method: 'getJobSchedulers' },
  args: [0, -1, true],
});

/** Schedulers are made, changed and removed before a worker is there, and while it is. */
export function scheduled(draft: Draft): void {
  const queue = draft.queue();
  draft.step(upsert(draft, queue), ...draft.times(draft.between(0, 4), () => change(draft, queue)));
  draft.step(schedulersOf(queue));
  const index = draft.worker({ queue, kind: 'function', concurrency: 1, strategy: [0] });
  draft.step({ do: 'start', worker: index }, SETTLE, schedulersOf(queue));
  for (let i = draft.between(0, 3); i > 0; i--) draft.step(change(draft, queue), SETTLE, schedulersOf(queue));
}

/** A scheduler becomes another one, or none, while a job of its runs. */
export function scheduledAnew(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const [id] = IDS;
  const index = draft.worker({ queue, kind: 'function', concurrency: 1, strategy: [0] });
  const plan: JobPlan = { ...iteration(draft), script: [[{ do: 'hold', signal }]] };
  draft.step({ do: 'start', worker: index }, { do: 'schedule', queue, id, repeat: { every: HOUR_MS }, job: plan });
  draft.step({ do: 'held', signal, times: 1 });
  draft.step(...draft.times(draft.between(1, 3), () => change(draft, queue, id)), schedulersOf(queue));
  draft.step({ do: 'signal', signal }, SETTLE, schedulersOf(queue));
}

/** Limits of the worker, of the queue, and for a time: those that hold are over when they are lifted. */
export function rates(draft: Draft): void {
  const queue = draft.queue();
  const long = 600_000;
  const pauses = draft.once(4);
  const plans = draft.times(draft.between(2, 6), (i): JobPlan => {
    const key = draft.key();
    return { key, ...(pauses && i === 1 && { script: [[{ do: 'rateLimit', ms: long }]] }) };
  });
  const start = (): Step[] => {
    const opts: Record<string, Plain> = draft.once(2) ? { limiter: { max: draft.between(1, 3), duration: long } } : {};
    // with a second slot others start while the limit is set
    const concurrency = pauses ? 1 : draft.oneOf([1, 2, 5]);
    const index = draft.worker({ queue, kind: 'function', concurrency, opts, strategy: [0] });
    return [{ do: 'start', worker: index }, SETTLE, ...asked(), { do: 'stop', worker: index }];
  };
  const asked = (): Step[] => draft.times(draft.between(1, 2), () => ({ do: 'queue', queue, ...ask(draft) }));
  const set = (): Step[] => draft.times(draft.between(0, 2), () => ({ do: 'queue', queue, ...limit(draft, long) }));
  draft.step(...set(), { do: 'add', queue, how: draft.oneOf(['one', 'bulk']), jobs: plans }, ...asked(), ...start());
  for (let i = draft.between(1, 2); i > 0; i--) draft.step(...set(), ...asked(), ...start());
}

function limit(draft: Draft, long: number): Call {
  return draft.oneOf<Call>([
    { method: 'setGlobalRateLimit', args: [draft.between(1, 3), long] },
    { method: 'removeGlobalRateLimit', args: [] },
    { method: 'setGlobalConcurrency', args: [draft.between(1, 3)] },
    { method: 'removeGlobalConcurrency', args: [] },
    { method: 'rateLimit', args: [long] },
    { method: 'removeRateLimitKey', args: [] },
    { method: 'removeRateLimitKey', args: [] },
  ]);
}

function ask(draft: Draft): Call {
  return draft.oneOf<Call>([
    { method: 'getRateLimitTtl', args: draft.oneOf<Plain[]>([[], [1], [2], [10]]) },
    { method: 'getGlobalRateLimit', args: [] },
    { method: 'getGlobalConcurrency', args: [] },
    { method: 'isMaxed', args: [] },
    { method: 'getJobCounts', args: [] },
  ]);
}
