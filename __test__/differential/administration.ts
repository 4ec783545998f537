/** What is done from outside: to a job, and to a queue. */
import type { Draft } from './generate.js';
import type { JobPlan, Step } from './program.js';
import type { Plain } from './values.js';

/** Something that is done to a job from outside. */
export function admin(draft: Draft): Pick<Extract<Step, { do: 'job' }>, 'method' | 'args'> {
  return draft.oneOf<{ method: string; args: Plain[] }>([
    { method: 'remove', args: [] },
    { method: 'promote', args: [] },
    { method: 'retry', args: draft.oneOf<Plain[]>([[], ['completed'], ['failed', { resetAttemptsMade: true }]]) },
    { method: 'changeDelay', args: [draft.oneOf([0, 1_000_000])] },
    { method: 'changePriority', args: [{ priority: draft.oneOf([0, 1, 5]), lifo: draft.oneOf([true, false]) }] },
    { method: 'updateData', args: [{ key: 'other' }] },
    { method: 'log', args: ['from outside'] },
    { method: 'getState', args: [] },
    { method: 'getDependenciesCount', args: [] },
    { method: 'removeUnprocessedChildren', args: [] },
    { method: 'removeChildDependency', args: [] },
    { method: 'removeDeduplicationKey', args: [] },
    { method: 'extendLock', args: ['no token', 1_000] },
    { method: 'clearLogs', args: [] },
    { method: 'updateProgress', args: [11] },
    { method: 'moveToFailed', args: [{ $: 'error:from outside' }, 'no token', false] },
    { method: 'moveToCompleted', args: ['from outside', 'no token', false] },
    { method: 'moveToWait', args: ['no token'] },
  ]);
}

/** Something that is done to a queue. */
export function overall(
  draft: Draft,
  plans: readonly JobPlan[],
  mayObliterate = true,
): Pick<Extract<Step, { do: 'queue' }>, 'method' | 'args'> {
  const state = draft.oneOf(['completed', 'failed', 'delayed', 'wait', 'prioritized', 'active']);
  // which of the jobs that ran beside each other was the first to end is a question of luck
  const limits = ['completed', 'failed'].includes(state) ? [0, 100] : [0, 1, 100];
  return draft.oneOf<{ method: string; args: Plain[] }>([
    { method: 'pause', args: [] },
    { method: 'resume', args: [] },
    { method: 'resume', args: [] },
    { method: 'drain', args: [draft.oneOf([true, false])] },
    { method: 'clean', args: [0, draft.oneOf(limits), state] },
    { method: 'retryJobs', args: [draft.oneOf<Plain>([{}, { state: 'completed' }, { state: 'failed', count: 100 }])] },
    { method: 'promoteJobs', args: [] },
    { method: 'remove', args: [`job:${draft.oneOf(plans).key}`] },
    { method: 'getJobCounts', args: [] },
    { method: 'getCountsPerPriority', args: [[0, 1, 2, 3]] },
    { method: 'obliterate', args: [draft.oneOf<Plain>(mayObliterate ? [{}, { force: true }] : [{}])] },
    { method: 'getWaiting', args: [draft.oneOf([0, 1]), draft.oneOf([-1, 1])] },
    { method: 'getPrioritized', args: [0, draft.oneOf([-1, 1])] },
    {
      method: 'getJobs',
      args: [['wait', 'prioritized', 'delayed'], 0, draft.oneOf([-1, 2]), draft.oneOf([true, false])],
    },
    { method: 'getJobCountByTypes', args: ['wait', 'failed', 'completed', 'delayed'] },
    { method: 'count', args: [] },
    { method: 'setGlobalConcurrency', args: [draft.between(1, 3)] },
    { method: 'isMaxed', args: [] },
  ]);
}
