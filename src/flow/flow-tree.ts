/** What `FlowProducer.getFlow` takes and gives. */
import type { Commands } from '../connection/commands.js';
import type { Job } from '../job/job.js';
import type { NativeJob } from '../native/types.js';

/** A job of a flow that was added, with those it waits for. */
export interface JobNode {
  /** The job. */
  job: Job;
  /** The jobs that it waits for. */
  children?: JobNode[];
}

/** Which flow to read. Source: BullMQ 6.7.0 `NodeOpts`. */
export interface NodeOpts {
  /** Name of the root's queue. */
  queueName: string;
  /**
   * Prefix of the root's queue.
   * @defaultValue that of the producer
   */
  prefix?: string;
  /** Id of the root. */
  id: string;
  /**
   * Levels to read, the root's with them: 0, less or a fraction is all of them, `undefined` and what is no number the root alone.
   * @defaultValue 10
   */
  depth?: number;
  /**
   * About how many children of a job to read, of each kind (processed, pending, failed, ignored).
   * @defaultValue 20
   */
  maxChildren?: number;
}

/**
 * A tree of jobs, or undefined when there is no such root; a child that is gone stands in it as undefined.
 * @param jobOf makes the job of a queue, which is given by its qualified name
 * @throws (rejects) RangeError for a `maxChildren` that is no whole number of at least 1
 */
export async function readTree(
  commands: Commands,
  prefix: string,
  opts: NodeOpts,
  jobOf: (queue: string, job: NativeJob) => Job,
): Promise<JobNode | undefined> {
  const { queueName, id } = opts;
  const maxChildren = Number(opts.maxChildren ?? MAX_CHILDREN);
  if (!Number.isInteger(maxChildren) || maxChildren < 1) {
    throw new RangeError('maxChildren must be a whole number of at least 1');
  }
  // as in BullMQ, what is no text goes by its text
  const root = [prefix, queueName, id].map(String) as [string, string, string];
  const nodes = await commands.native.getTree(...root, levelsOf(opts), maxChildren);
  const treeAt = (at: number): JobNode | undefined => {
    const { queue, job, children } = nodes[at];
    if (!job) return undefined;
    const node: JobNode = { job: jobOf(queue, job) };
    // the type of a child leaves out, as BullMQ's does, that it may be gone
    if (children.length > 0) node.children = children.map((child) => treeAt(child) as JobNode);
    return node;
  };
  return treeAt(0);
}

const MAX_CHILDREN = 20;
const ALL_LEVELS = 2 ** 32 - 1;

/** BullMQ counts down to 0, and stops at NaN as well. */
function levelsOf(opts: NodeOpts): number {
  if (!('depth' in opts)) return 10;
  const depth = Number(opts.depth);
  if (Number.isNaN(depth)) return 1;
  return Number.isInteger(depth) && depth > 0 ? Math.min(depth, ALL_LEVELS) : ALL_LEVELS;
}
