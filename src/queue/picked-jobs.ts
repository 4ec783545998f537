/** The jobs that a filter picks, found, counted and changed in steps. */
import type { Commands } from '../connection/commands.js';
import type { NativeChangedJobs, NativeJob, NativePick, NativeQueue } from '../native/types.js';
import type { ReadFilter } from '../options/job-filter.js';
import type { JobState } from '../types/job-state.js';
import { takeSteps, type Place, type Steps } from './job-steps.js';

/** What ended is told from what ends while it is changed by its time. */
const ENDED: readonly JobState[] = ['failed', 'completed'];

/** All steps of a call: the states are those of the filter. */
export type StepsOf = Omit<Steps, 'states'>;

/** Each once, though one that moves on while they are looked for is found in two states. */
export async function findPicked(
  { native }: Commands,
  { states, pick }: ReadFilter,
  steps: StepsOf,
): Promise<{ jobs: NativeJob[]; place: Place | undefined }> {
  const found = new Map<string, NativeJob>();
  const place = await takeSteps(
    { ...steps, states },
    ({ state, within }, room) => native.findJobs(state, pick, within, room),
    ({ jobs }) => {
      const before = found.size;
      for (const job of jobs) if (!found.has(job.id)) found.set(job.id, job);
      return found.size - before;
    },
  );
  return { jobs: [...found.values()], place };
}

/** How many there are, `limit` at most, and the place behind the last one. */
export async function countPicked(
  { native }: Commands,
  { states, pick }: ReadFilter,
  steps: StepsOf,
): Promise<{ jobs: number; place: Place | undefined }> {
  let jobs = 0;
  const place = await takeSteps(
    { ...steps, states },
    ({ state, within }, room) => native.countJobs(state, pick, within, room),
    ({ picked }) => {
      jobs += picked;
      return picked;
    },
  );
  return { jobs, place };
}

/** A step that changes jobs. */
export type ChangeStep = (
  native: NativeQueue,
  at: { state: JobState; pick: NativePick; place: string; room: number; now: number },
) => Promise<NativeChangedJobs>;

/**
 * Takes such steps. What ends meanwhile stays.
 * @param changed hears of each step what it has changed
 */
export async function changePicked(
  commands: Commands,
  { states, pick }: ReadFilter,
  { now, ...steps }: StepsOf & { now: number },
  step: ChangeStep,
  changed: (ids: string[], state: JobState) => void,
): Promise<number> {
  let jobs = 0;
  await takeSteps(
    { ...steps, states },
    ({ state, within }, room) => {
      const until = ENDED.includes(state) ? { before: now, ...pick } : pick;
      return commands.startingParents((native) => step(native, { state, pick: until, place: within, room, now }));
    },
    ({ ids }, state) => {
      changed(ids, state);
      jobs += ids.length;
      return ids.length;
    },
  );
  return jobs;
}
