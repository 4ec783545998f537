/** Draws what jobs are added with, and what their handlers do. */
import type { Draft } from './generate.js';
import type { Action, JobPlan } from './program.js';
import { THROWN } from './values.js';
import type { Plain, Thrown } from './values.js';

const odd = (text: string): Plain => ({ $: `number:${text}` });

const RESULTS: readonly Plain[] = [
  ...[
    0,
    '',
    false,
    null,
    'text',
    42,
    [1, 'two', null],
    { deep: { er: [true] } },
    'näive \u{1f600} \u0000 "\\"',
    '{}',
    '[1',
  ],
  ...[{ $: 'undefined' }, odd('NaN'), odd('Infinity'), odd('-0'), { $: 'date:0' }, { $: 'error:of a result' }],
  ...[{ $: 'long:10240' }, { $: 'long:70000' }, { $: 'long:300000' }],
];

/** Delays, and what may be taken for one. All that are due at all are due soon. */
const DELAYS: readonly Plain[] = [0, 1, 20, 60, '40', odd('1e19'), 1e12, odd('1e300'), 10.5, -5];
const BACKOFFS: readonly Plain[] = [
  ...[0, 1, 30, { type: 'fixed', delay: 30 }, { type: 'fixed', delay: '30' }, { type: 'exponential', delay: 15 }],
  ...[
    { type: 'exponential', delay: '15' },
    { type: 'fixed', delay: odd('1e19') },
    { type: 'exponential', delay: odd('1e300') },
  ],
  ...[{ type: 'fixed' }, { type: 'exponential' }, { type: 'custom' }, { type: 'fixed', delay: 12.5 }],
  ...[
    { type: 'custom', delay: 20 },
    { type: 'fixed', delay: '' },
  ],
];
const STRATEGY: readonly Plain[] = [
  ...[0, 10, 30, -1, odd('Infinity'), odd('-Infinity'), odd('NaN'), odd('1e300'), odd('1e19'), '20', 'soon', null],
  ...[{ $: 'undefined' }, 10.5, 2 ** 53, 2 ** 42],
];
const ATTEMPTS: readonly Plain[] = [2, 2, 3, 3, 2.5, 1.5, '3', 0, 1, -1];

export function strategy(draft: Draft): Plain[] {
  return draft.times(draft.between(1, 3), () => draft.oneOf(STRATEGY));
}

/** Options with which a job is added. */
export function jobOpts(draft: Draft, { timed = true } = {}): Record<string, Plain> {
  const opts: Record<string, Plain> = {};
  if (draft.once(2)) opts.attempts = draft.oneOf(ATTEMPTS);
  if (draft.once(timed ? 2 : 1e9)) opts.backoff = draft.oneOf(BACKOFFS);
  if (draft.once(timed ? 6 : 1e9)) opts.delay = draft.oneOf(DELAYS);
  if (draft.once(6)) opts.priority = draft.oneOf([0, 1, 2, 3, 10, 2_097_151]);
  if (draft.once(8)) opts.lifo = draft.oneOf([true, false]);
  if (draft.once(8))
    opts.removeOnComplete = draft.oneOf<Plain>([true, false, 0, 1_000, { count: 0 }, { age: 3_600 }, -1]);
  if (draft.once(8)) opts.removeOnFail = draft.oneOf<Plain>([true, false, 0, 1_000, { count: 0 }, { age: 3_600 }, -1]);
  if (draft.once(10)) opts.keepLogs = draft.oneOf<Plain>([1, 2, 0, -1]);
  if (draft.once(12)) opts.stackTraceLimit = draft.oneOf<Plain>([0, 1, 2]);
  if (draft.once(14)) opts.sizeLimit = draft.oneOf<Plain>([1, 1_000, 0]);
  return opts;
}

/** A job that runs in a function, with all that its handler may do. */
export function job(draft: Draft, { timed = true, copies = false, childQueue = -1, alone = false } = {}): JobPlan {
  const opts = jobOpts(draft, { timed });
  const script = draft.times(draft.between(0, 3), () => run(draft, { timed, childQueue, alone }));
  return {
    key: draft.key(),
    ...(copies && draft.once(3) && { copies: draft.oneOf([2, 5, 20, 60]) }),
    ...(Object.keys(opts).length > 0 && { opts }),
    ...(script.length > 0 && { script }),
  };
}

interface Ways {
  readonly timed: boolean;
  /** Where children are added, if they are. */
  readonly childQueue: number;
  /** No other slot can take the job while its handler still runs. */
  readonly alone: boolean;
}

/** What a handler does in one run. */
function run(draft: Draft, ways: Ways): Action[] {
  const before = draft.times(draft.oneOf([0, 0, 1, 2]), () => onTheWay(draft, ways.timed));
  const last = ending(draft, ways);
  // what a call says of a job that its handler has spoiled is the text of an accident
  const spoilt = before.some((action) => action.do === 'setOpts') && last.do === 'call';
  return [...before, spoilt ? { do: 'return', value: null } : last];
}

function onTheWay(draft: Draft, timed: boolean): Action {
  switch (draft.random.next(timed ? 9 : 8)) {
    case 0:
      return storing(draft, 'updateData', draft.oneOf<Plain>([{ key: 'new' }, null, 'text', 7, []]));
    case 1:
      return storing(draft, 'updateProgress', draft.oneOf<Plain>([0, 50, 'half', { at: 1 }, true, null]));
    case 2:
    case 3:
      return storing(draft, 'log', draft.oneOf(['one', 'two', 'drei', '']));
    case 4:
      return { do: 'setOpts', what: draft.oneOf(['null', 'freeze', 'freezeOpts']) };
    case 5:
      return setOpt(draft, timed);
    case 6:
      return question(draft);
    case 7:
      return { do: 'call', method: 'extendLock', args: ['$token', draft.oneOf([10_000, 60_000])] };
    default:
      return { do: 'wait', ms: draft.oneOf([0, 1, 5, 20]) };
  }
}

function storing(draft: Draft, method: string, arg: Plain): Action {
  return { do: 'call', method, args: [arg], ...(draft.once(3) && { unawaited: true }) };
}

function setOpt(draft: Draft, timed: boolean): Action {
  const [name, values] = draft.oneOf<readonly [string, readonly Plain[]]>([
    ['attempts', ATTEMPTS],
    ['backoff', timed ? [...BACKOFFS, null, { $: 'undefined' }] : [null, 0, { $: 'undefined' }]],
    ['lifo', [true, false, null]],
    ['removeOnComplete', [true, false, 0]],
    ['removeOnFail', [true, false, 0]],
    ['stackTraceLimit', [0, 1, null]],
    ['keepLogs', [1, -1, null]],
    ['priority', [1, 5, null]],
    ['delay', [10]],
  ]);
  return { do: 'setOpt', name, value: draft.oneOf(values) };
}

function question(draft: Draft): Action {
  const method = draft.oneOf([
    ...['getState', 'isActive', 'getChildrenValues', 'getDependenciesCount', 'clearLogs', 'remove', 'promote'],
    ...['isWaiting', 'isDelayed', 'removeDeduplicationKey'],
  ]);
  return { do: 'call', method, args: [] };
}

function ending(draft: Draft, { timed, childQueue, alone }: Ways): Action {
  const ways: readonly [number, () => Action][] = [
    [6, () => ({ do: 'return', value: draft.oneOf(RESULTS) })],
    [6, () => ({ do: 'throw', what: 'error', text: draft.oneOf(['boom', '', 'böse', 'bullmq:movedToDelayed']) })],
    [4, () => ({ do: 'throw', what: draft.oneOf<Thrown>(THROWN) })],
    [4, () => ({ do: 'moveToWait' })],
    [
      timed ? 4 : 0,
      () => ({
        do: 'moveToDelayed',
        ms: draft.oneOf<Plain>([0, 0, 0, 1, 10, 40, -50, odd('Infinity'), odd('1e19')]),
      }),
    ],
    [timed ? 1 : 0, () => ({ do: 'rateLimit', ms: draft.oneOf([60, 120]) })],
    [childQueue < 0 ? 0 : 4, () => ({ do: 'waitForChildren', queue: childQueue, jobs: children(draft) })],
    [alone ? 1 : 0, () => ({ do: 'call', method: 'moveToWait', args: ['$token'] })],
    [1, () => ({ do: 'call', method: 'moveToCompleted', args: ['by hand', '$token', false] })],
    [alone ? 1 : 0, () => ({ do: 'call', method: 'moveToFailed', args: [{ $: 'error:by hand' }, '$token', false] })],
  ];
  let at = draft.random.next(ways.reduce((sum, [weight]) => sum + weight, 0));
  for (const [weight, make] of ways) {
    if (at < weight) return make();
    at -= weight;
  }
  return { do: 'return', value: null };
}

/** One child that may fail and the ways in which its parent takes that, and others that end well. */
function children(draft: Draft): JobPlan[] {
  const first = troublesome(draft);
  // a parent that goes on at a failure may complete before its other children have ended, or try to and fail
  if (first.opts?.continueParentOnFailure) return [first];
  return [first, ...draft.times(draft.oneOf([0, 0, 1, 2]), () => ({ key: draft.key() }))];
}

export const FAILURE_OPTIONS = [
  'failParentOnFailure',
  'ignoreDependencyOnFailure',
  'removeDependencyOnFailure',
  'continueParentOnFailure',
] as const;

function troublesome(draft: Draft): JobPlan {
  const key = draft.key();
  if (draft.once(2)) return { key };
  const option = draft.oneOf(FAILURE_OPTIONS);
  return { key, opts: { [option]: true }, script: [[{ do: 'throw', what: 'error', text: 'of a child' }]] };
}

/** What a job in a sandbox can do. */
export function sandboxJob(draft: Draft): JobPlan {
  const steps = draft.times(draft.between(1, 3), (): Action[] => {
    const ending = draft.oneOf<Action>([
      {
        do: 'return',
        value: draft.oneOf<Plain>(['text', 0, null, { a: [1] }, { $: 'undefined' }, { $: 'long:70000' }]),
      },
      { do: 'throw', what: draft.oneOf<Thrown>(['error', 'unrecoverable', 'frozen']), text: 'in the sandbox' },
      { do: 'moveToWait' },
      { do: 'moveToDelayed', ms: draft.oneOf([0, 0, 20]) },
    ]);
    const call = draft.oneOf<Action[]>([
      [],
      [],
      [{ do: 'call', method: 'log', args: ['one'] }],
      [{ do: 'call', method: 'updateProgress', args: [draft.oneOf<Plain>([50, { at: 1 }])] }],
      [{ do: 'wait', ms: 5 }],
    ]);
    return [...call, ending];
  });
  const opts = draft.once(2) ? { attempts: 3, backoff: draft.oneOf<Plain>([0, 10]) } : undefined;
  return {
    key: draft.key(),
    ...(draft.once(3) && { copies: draft.oneOf([3, 10]) }),
    ...(opts && { opts }),
    script: steps,
  };
}

/** Options with which a job is added for certain: who waits for its handler would wait in vain. */
export function accepted({ sizeLimit: _, ...opts }: JobPlan['opts'] = {}): JobPlan['opts'] {
  return opts;
}

/** Where jobs stall: a lock has another life there than a lease has here. */
export function withoutExtending({ script = [], ...plan }: JobPlan): JobPlan & { readonly script: Action[][] } {
  const runs = script.map((run) => run.filter((action) => action.do !== 'call' || action.method !== 'extendLock'));
  return { ...plan, script: runs };
}
