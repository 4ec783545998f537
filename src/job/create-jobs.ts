/** Jobs that are made to be added: each is checked and its texts are written before any is sent. */
import { ADOPT_OPTIONS, SHARE_OPTIONS } from './members.js';
import { COMMANDS } from '../connection/members.js';
import { FlowEncoder, namedParent } from '../add/flow-encoder.js';
import {
  NO_OPTIONS,
  checkName,
  normaliseOptions,
  type CheckedOptions,
  type OptionsChecker,
} from '../add/job-options.js';
import type { AddedJob, Producer } from '../add/producer.js';
import { rejectWith } from '../errors/reject-with.js';
import { stringify } from '../native/json.js';
import { errorFromNative } from '../native/native-error.js';
import type { BulkJobOptions, JobsOptions, ParentOptions } from '../options/job.js';
import type { JobJson } from '../types/job-json.js';
import { isCustom } from './custom-class.js';
import type { JobQueue } from './minimal-queue.js';

/** Options of a job that was given none. Passed to the constructor it means: the caller fills in the fields. */
export const BLANK: JobsOptions = Object.freeze(normaliseOptions(undefined));

interface NewJob extends AddedJob {
  timestamp: number;
  asJSON(): JobJson;
  [ADOPT_OPTIONS](opts: JobsOptions, now: number): void;
  [SHARE_OPTIONS](sibling: unknown): void;
}

/** The class of the jobs. */
interface JobClass<J> {
  new (queue: JobQueue, name: never, data: never, opts: JobsOptions | undefined, id?: string): J;
  readonly fromJSON: unknown;
  readonly prototype: object;
}

/** A job that is checked and not added. */
export interface CheckedJob<J> {
  job: J;
  /** The JSON text of its data. */
  data: string;
  checked: CheckedOptions;
  /** That of a job of a flow. */
  parent?: ParentOptions;
}

/** Adds a job; one that may find its group full by itself. */
function addOne<J extends NewJob>(
  producer: Producer,
  job: J,
  created: number | undefined,
  data: string,
  { opts, text }: CheckedOptions,
): Promise<J> {
  return opts.group?.maxSize ? producer.addAlone(job, created, data, text) : producer.add(job, created, data, text);
}

/** Source: BullMQ 6.7.0 `Job.create`. */
export function createJob<J extends NewJob>(
  Job: JobClass<J>,
  queue: JobQueue,
  name: string,
  data: unknown,
  opts: JobsOptions | undefined,
): Promise<J> {
  try {
    const { producer } = queue[COMMANDS];
    const now = Date.now();
    if (isCustom(Job)) {
      const made = customJob(Job, queue, producer.options, name, data, opts, undefined, undefined, now);
      return made.checked.opts.parent
        ? addChildren(queue, [made], now).then(([child]) => child)
        : addOne(producer, made.job, made.checked.opts.timestamp ? undefined : now, made.data, made.checked);
    }
    const job = new Job(queue, checkName(name) as never, data as never, BLANK);
    const text = encodeData(data);
    if (!opts) {
      job.timestamp = now;
      return producer.add(job, now, text, NO_OPTIONS);
    }
    const checked = producer.options.check(job.name, text, opts);
    job[ADOPT_OPTIONS](checked.opts, now);
    if (checked.opts.parent) return addChildren(queue, [{ job, data: text, checked }], now).then(([child]) => child);
    return addOne(producer, job, opts.timestamp ? undefined : now, text, checked);
  } catch (error) {
    return rejectWith(error);
  }
}

/** Source: BullMQ 6.7.0 `Job.createBulk`. */
export function createJobs<J extends NewJob>(
  Job: JobClass<J>,
  queue: JobQueue,
  jobs: { name: string; data: unknown; opts?: BulkJobOptions }[],
): Promise<J[]> {
  try {
    const now = Date.now();
    const { producer } = queue[COMMANDS];
    if (jobs.some(({ opts }) => opts?.parent)) {
      const children = jobs.map(({ name, data, opts }) =>
        checkedJob(Job, queue, producer.options, name, data, opts ?? {}, undefined, undefined, now),
      );
      return addChildren(queue, children, now);
    }
    const created = new Array<J>(jobs.length);
    if (isCustom(Job)) {
      return producer.addBulk(created, now, (encoder, i) => {
        const { name, data, opts } = jobs[i];
        const made = customJob(Job, queue, producer.options, name, data, opts, undefined, undefined, now);
        created[i] = made.job;
        encoder.append(made.job.name, made.data, made.checked.text);
      });
    }
    // Jobs that share one options object share what became of it.
    let given: JobsOptions | undefined;
    let checked: CheckedOptions = { opts: BLANK, text: NO_OPTIONS };
    return producer.addBulk(created, now, (encoder, i) => {
      const { name, data, opts } = jobs[i];
      const job = new Job(queue, checkName(name) as never, data as never, BLANK);
      const text = encodeData(data);
      created[i] = job;
      if (!opts) {
        job.timestamp = now;
        encoder.append(job.name, text, NO_OPTIONS);
        return;
      }
      if (opts !== given || checked.opts.sizeLimit) {
        checked = producer.options.check(job.name, text, opts);
        given = opts;
      }
      job[ADOPT_OPTIONS](checked.opts, now);
      encoder.append(job.name, text, checked.text);
    });
  } catch (error) {
    return rejectWith(error);
  }
}

/**
 * A job of a flow, or one with a parent.
 * @param parent of a job of a flow, which its options do not name
 * @param before the one made before it at the same time: siblings with equal options share them
 * @throws as {@link createJob} rejects
 */
export function checkedJob<J extends NewJob>(
  Job: JobClass<J>,
  queue: JobQueue,
  options: OptionsChecker,
  name: string,
  data: unknown,
  opts: JobsOptions,
  parent: ParentOptions | undefined,
  id: string | undefined,
  now: number,
  before?: CheckedJob<J>,
): CheckedJob<J> {
  if (isCustom(Job)) return customJob(Job, queue, options, name, data, opts, parent, id, now);
  const job = new Job(queue, checkName(name) as never, data as never, BLANK, id);
  const text = encodeData(data);
  const checked = options.check(job.name, text, opts, parent);
  if (before && before.parent === parent && before.checked === checked) job[SHARE_OPTIONS](before.job);
  else job[ADOPT_OPTIONS](parent ? { ...checked.opts, parent } : checked.opts, now);
  return { job, data: text, checked, parent };
}

/** The same of a class of the user's: its constructor is given all, and what its `asJSON` gives is added. */
function customJob<J extends NewJob>(
  Job: JobClass<J>,
  queue: JobQueue,
  options: OptionsChecker,
  name: string,
  data: unknown,
  opts: JobsOptions | undefined,
  parent: ParentOptions | undefined,
  id: string | undefined,
  now: number,
): CheckedJob<J> {
  const given = parent ? { ...opts, parent } : opts;
  const job = new Job(queue, checkName(name) as never, data as never, given ?? undefined, id ?? given?.jobId);
  const json = job.asJSON();
  const checked = options.check(job.name, json.data, json.opts, parent);
  if (!checked.opts.timestamp) job.timestamp = now;
  return { job, data: json.data, checked, parent };
}

/** Adds jobs to one queue of which some are children of jobs that exist. */
async function addChildren<J extends NewJob>(queue: JobQueue, children: CheckedJob<J>[], now: number): Promise<J[]> {
  const encoder = new FlowEncoder();
  const { name, qualifiedName } = queue;
  const place = { prefix: qualifiedName.slice(0, -name.length - 1), name };
  for (const { job, data, checked } of children) {
    const { parent, jobId } = checked.opts;
    encoder.append(place, namedParent(parent), jobId || undefined, Boolean(jobId), job.name, data, checked);
    if (jobId) job.id = jobId;
  }
  const { exceptions } = await queue[COMMANDS].addFlows(now, encoder.take());
  for (const { index, id, error } of exceptions) {
    if (error) throw errorFromNative(error);
    children[index].job.id = id;
  }
  return children.map(({ job }) => job);
}

/** JSON text of a job's data. Data that JSON has no text for (undefined, a function, a symbol) is stored as `{}`. */
export function encodeData(data: unknown): string {
  return stringify(data) ?? NO_DATA;
}

const NO_DATA = '{}';
