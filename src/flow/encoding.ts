import { randomUUID } from 'node:crypto';
import { FlowEncoder, namedParent, type EncodedParent } from '../add/flow-encoder.js';
import { NOTHING } from '../add/job-options.js';
import type { Commands } from '../connection/commands.js';
import { childId } from '../job/child-id.js';
import { checkedJob, type CheckedJob } from '../job/create-jobs.js';
import { isCustom } from '../job/custom-class.js';
import type { Job } from '../job/job.js';
import type { FlowJob, FlowJobNode, FlowParentJob, FlowQueuesOpts } from '../options/flow.js';
import type { JobsOptions, ParentOptions } from '../options/job.js';
import type { FlowSpans, NodeSpan } from '../telemetry/flow-spans.js';
import { telemetryOf } from '../telemetry/trace.js';
import type { FlowQueue } from './flow-queue.js';
import type { JobNode } from './flow-tree.js';

/** Makes and checks the jobs of flows, and writes them for the engine; nothing is sent before all are checked. */
export class Encoding {
  readonly encoder = new FlowEncoder();
  readonly now = Date.now();
  /** Children whose ids the engine makes, in order. */
  readonly unnamed: Job[] = [];
  private before: CheckedJob<Job> | undefined;
  /** Whether the class is the user's: its constructor is given the ids. */
  private readonly isCustom: boolean;
  /** Jobs that were written, whose children were not. */
  private readonly parents: {
    node: FlowParentJob;
    queue: FlowQueue;
    index: number;
    tree: JobNode;
    span: NodeSpan | undefined;
    mayBeRefused: boolean;
  }[] = [];

  constructor(
    private readonly commands: Commands,
    private readonly JobClass: typeof Job,
    private readonly queueOf: (node: FlowJob | FlowJobNode) => FlowQueue,
    private readonly queuesOptions: FlowQueuesOpts | undefined,
    private readonly spans: FlowSpans | undefined,
  ) {
    this.isCustom = isCustom(JobClass);
  }

  /** All roots come first, then all of their children, then those of these: as in BullMQ, they start in this order. */
  addAll(flows: FlowJob[]): JobNode[] {
    const trees = flows.map((flow) => {
      const parent = namedParent(flow.opts?.parent);
      return this.add(flow, parent, parent, undefined, Boolean(parent));
    });
    while (this.parents.length > 0) {
      for (const { node, queue, index, tree, span, mayBeRefused } of this.parents.splice(0)) {
        const parent = { id: tree.job.id as string, queue: queue.qualifiedName };
        tree.children = node.children.map((child) => this.add(child, parent, index, span, mayBeRefused));
      }
    }
    return trees;
  }

  /**
   * @param encoded where the parent is: among these jobs, or outside
   * @param around the span of the parent
   * @param mayBeRefused whether a parent of it, however far above, is outside or may yield to another job
   */
  private add(
    node: FlowJob | FlowJobNode,
    parent: ParentOptions | undefined,
    encoded: EncodedParent,
    around: NodeSpan | undefined,
    mayBeRefused: boolean,
  ): JobNode {
    const isPlain = typeof encoded === 'number' && !mayBeRefused && !this.spans && !this.isCustom && this.isPlain(node);
    const id = isPlain ? undefined : node.opts?.jobId || randomUUID();
    const span = this.spans?.start(node.queueName, node.name, id as string, around);
    try {
      return this.addNode(node, id, parent, encoded, span, mayBeRefused);
    } catch (error) {
      if (span) this.spans?.refuse(span, error);
      throw error;
    }
  }

  /** Whether the engine keeps the job, a child, with its like: such jobs are named when they are there. */
  private isPlain({ queueName, opts, children }: FlowJob | FlowJobNode): boolean {
    if (children?.length || opts?.jobId) return false;
    const defaults = this.queuesOptions?.[queueName]?.defaultJobOptions;
    return !(opts && needsRecord(opts)) && !(defaults && needsRecord(defaults));
  }

  private addNode(
    node: FlowJob | FlowJobNode,
    id: string | undefined,
    parent: ParentOptions | undefined,
    encoded: EncodedParent,
    span: NodeSpan | undefined,
    mayBeRefused: boolean,
  ): JobNode {
    const queue = this.queueOf(node);
    const given = this.givenTo(node, parent, span);
    const isGiven = Boolean(node.opts?.jobId);
    const { options } = this.commands.producer;
    const { name } = node;
    const made = checkedJob(this.JobClass, queue, options, name, node.data, given, parent, id, this.now, this.before);
    this.before = made;
    const { job } = made;
    if (id === undefined) this.unnamed.push(job);
    const index = this.encoder.append(queue, encoded, id, isGiven, job.name, made.data, made.checked);
    const tree: JobNode = { job };
    if (node.children?.length) {
      // a root that yields to another job is not added
      const mayGo = mayBeRefused || Boolean(given.deduplication);
      this.parents.push({ node, queue, index, tree, span, mayBeRefused: mayGo });
    }
    return tree;
  }

  /** The options of a job, with the defaults of its queue. */
  private givenTo(
    node: FlowJob | FlowJobNode,
    parent: ParentOptions | undefined,
    span: NodeSpan | undefined,
  ): JobsOptions {
    const defaults = this.queuesOptions?.[node.queueName]?.defaultJobOptions;
    if (!node.opts && !defaults && !span) return NOTHING;
    const { parent: _, ...given } = { ...defaults, ...node.opts } as JobsOptions;
    if (parent && given.deduplication?.keepLastIfActive) {
      throw new Error('keepLastIfActive deduplication cannot be used on flow nodes with a parent');
    }
    // none, as in BullMQ; `add` refuses it
    if (given.jobId === null) given.jobId = undefined;
    const telemetry = telemetryOf(given, span?.metadata);
    if (telemetry) given.telemetry = telemetry;
    return given;
  }
}

/** Options that give a job a place of its own in the queue. */
function needsRecord({ delay, lifo, priority, group, deduplication }: JobsOptions): boolean {
  return [delay, lifo, priority, group, deduplication].some((option) => option !== undefined);
}

/**
 * @param namedBy what ids begin with, in each queue
 * @param named index of the queue, the number of a first child, and how many follow one another, in turn
 */
export function nameChildren(jobs: Job[], namedBy: string[], named: number[]): void {
  let at = 0;
  for (let i = 0; i < named.length; i += 3) {
    const [queue, first, count] = named.slice(i, i + 3);
    for (let number = first; number < first + count; number++) jobs[at++].id = childId(namedBy[queue], number);
  }
}
