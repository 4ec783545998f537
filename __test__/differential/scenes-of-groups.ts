/**
 * Scenes whose jobs have groups. BullMQ has none (execute.ts), and runs them as any others: what becomes of each is the same, and those of one group
 * start in the same order.
 */
import { admin } from './administration.js';
import type { Draft } from './generate.js';
import type { Action, JobPlan, Step } from './program.js';
import { ending } from './scenes-apart.js';
import { accepted, jobOpts, withoutExtending } from './scripts.js';
import type { Plain } from './values.js';

const GROUPS = ['one', 'two', 'three'];
const SETTLE: Step = { do: 'settle' };
/** Refused beside a group, where a job is added. */
const OF_JOBS_ALONE = new Set(['priority', 'lifo']);

const isOfGroups = (action: Action): boolean => action.do !== 'setOpt' || !OF_JOBS_ALONE.has(action.name);

/** Most have a group. */
function grouped(draft: Draft, { opts = {}, script = [], ...plan }: JobPlan, mayHavePriority = false): JobPlan {
  // what is a text starts at once there: who removes it finds it in another state
  const isText = (value: Plain) => typeof value === 'string';
  const own = Object.entries(opts).filter(([name, value]) => !OF_JOBS_ALONE.has(name) && !isText(value));
  const group: Record<string, Plain> = { id: draft.oneOf(GROUPS) };
  if (mayHavePriority && draft.once(3)) group.priority = draft.between(0, 2);
  if (draft.once(4)) group.weight = draft.oneOf([0.5, 3]);
  const all = draft.once(5) ? own : [...own, ['group', group] as const];
  return { ...plan, opts: Object.fromEntries(all), script: script.map((run) => run.filter(isOfGroups)) };
}

/** Something that is set for a group; one that is paused goes on before all is at rest. */
function settings(draft: Draft, queue: number): { readonly before: Step[]; readonly after: Step[] } {
  const set = (method: string, ...args: Plain[]): Step => ({ do: 'group', queue, method, args });
  const id = draft.oneOf(GROUPS);
  const one = draft.oneOf<Step[]>([
    [set('setGroupConcurrency', id, draft.between(1, 3))],
    [set('setGroupConcurrency', id, 1), set('removeGroupConcurrency', id)],
    [set('setGroupWeight', id, draft.oneOf([0.5, 2, 10]))],
    [set('setGroupRateLimit', id, draft.between(1, 3), draft.oneOf([20, 50]))],
    [set('rateLimitGroup', id, draft.oneOf([20, 60]))],
    [],
  ]);
  if (draft.once(2)) return { before: one, after: [] };
  return { before: [...one, set('pauseGroup', id)], after: [set('resumeGroup', id)] };
}

/** Options of a worker, by which no group is stuck. */
function rules(draft: Draft): Record<string, Plain> {
  const group: Record<string, Plain> = {};
  if (draft.once(2)) group.concurrency = draft.between(1, 3);
  if (draft.once(3)) group.limit = { max: draft.between(1, 3), duration: draft.oneOf([20, 50]) };
  if (draft.once(3)) group.ungrouped = 'fair';
  return { group };
}

function worker(draft: Draft, queue: number, more: Record<string, Plain> = {}): Step {
  const opts = { ...rules(draft), ...more };
  const concurrency = draft.oneOf([1, 2, 3, 10]);
  return { do: 'start', worker: draft.worker({ queue, kind: 'function', concurrency, opts, strategy: [0, 20] }) };
}

function added(draft: Draft, queue: number, jobs: readonly JobPlan[]): Step {
  return { do: 'add', queue, how: draft.oneOf(['one', 'bulk']), jobs };
}

/** What is done to a job does not ask where, or in which order, it waits. */
function administration(draft: Draft, plans: readonly JobPlan[]): Step {
  const what = admin(draft);
  const tells = ['changePriority', 'getState'].includes(what.method);
  return { do: 'job', key: draft.oneOf(plans).key, ...(tells ? { method: 'remove', args: [] } : what) };
}

/** Handlers that do anything there is, in groups that are limited, paused, deleted. */
export function inGroups(draft: Draft): void {
  const queue = draft.queue();
  const plans = () => draft.times(draft.between(2, 6), () => grouped(draft, ending(draft, queue)));
  const first = plans();
  const { before, after } = settings(draft, queue);
  const start = worker(draft, queue);
  draft.step(...before, added(draft, queue, first));
  for (let i = draft.oneOf([0, 0, 1, 3]); i > 0; i--) draft.step(administration(draft, first));
  if (draft.once(4)) draft.step({ do: 'group', queue, method: 'deleteGroup', args: [draft.oneOf(GROUPS)] });
  draft.step(...(draft.once(2) ? [...after, start] : [start, ...after]), SETTLE);
  for (let i = draft.oneOf([0, 1, 2]); i > 0; i--) draft.step(administration(draft, first));
  const second = settings(draft, queue);
  draft.step(...second.before, added(draft, queue, plans()), ...second.after, SETTLE);
}

/** A tree of which every job may have a group: parents wait for their turn, too. */
export function familiesInGroups(draft: Draft): void {
  const queue = draft.queue();
  const tree = (depth: number): JobPlan => {
    const children = depth > 0 ? draft.times(draft.between(1, 3), () => tree(draft.random.next(depth))) : [];
    return { ...grouped(draft, { key: draft.key() }, true), ...(children.length > 0 && { children }) };
  };
  const { before, after } = settings(draft, queue);
  const roots = draft.times(draft.between(1, 2), () => tree(2));
  draft.step(...before, { do: 'add', queue, how: 'flow', jobs: roots }, worker(draft, queue), ...after, SETTLE);
}

/** One slot and no clock. */
export function inOrderOfGroups(draft: Draft): void {
  if (draft.steps.length > 0) return inGroups(draft);
  draft.ordered = true;
  const queue = draft.queue();
  const plans = draft.times(draft.between(3, 12), (): JobPlan => {
    const { opts, ...plan } = grouped(draft, ending(draft, -1, false), true);
    // which are kept goes by the order of all
    const { removeOnComplete: _, removeOnFail: __, ...others } = opts ?? {};
    return { ...plan, opts: others };
  });
  draft.step(added(draft, queue, plans));
  for (const id of GROUPS) {
    if (draft.once(3)) draft.step({ do: 'group', queue, method: 'setGroupWeight', args: [id, draft.oneOf([0.5, 3])] });
    if (draft.once(6)) draft.step({ do: 'group', queue, method: 'deleteGroup', args: [id] });
  }
  for (let i = draft.oneOf([0, 1, 3]); i > 0; i--) draft.step(administration(draft, plans));
  const { group } = rules(draft) as { group: Record<string, Plain> };
  delete group.limit;
  const opts = { group };
  draft.step({ do: 'start', worker: draft.worker({ queue, kind: 'function', concurrency: 1, opts }) }, SETTLE);
}

/** A worker is gone, with jobs of groups: their places are free for others. */
export function abandonedGroups(draft: Draft): void {
  const queue = draft.queue();
  const signal = draft.signal();
  const n = draft.between(1, 3);
  const quick = { lockDuration: 400, stalledInterval: 200 };
  const first = draft.worker({
    queue,
    kind: 'function',
    concurrency: n,
    opts: { ...quick, group: { concurrency: n } },
  });
  const held = draft.times(n, (): JobPlan => {
    const { script = [], ...plan } = grouped(draft, withoutExtending(ending(draft)));
    return { ...plan, opts: { ...accepted(plan.opts), delay: 0 }, script: [[{ do: 'hold', signal }], ...script] };
  });
  draft.step({ do: 'start', worker: first }, { do: 'add', queue, how: 'one', jobs: held });
  draft.step({ do: 'held', signal, times: n }, { do: 'stop', worker: first, force: true });
  const others = draft.times(draft.between(1, 4), () => grouped(draft, { key: draft.key(), opts: jobOpts(draft) }));
  draft.step(added(draft, queue, others), worker(draft, queue, quick), SETTLE, { do: 'signal', signal }, SETTLE);
}
