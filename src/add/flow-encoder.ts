import type { CheckedOptions } from './job-options.js';
import { LongText } from '../native/long-text.js';
import { doubled } from '../native/typed-array.js';
import type { NativeFlows } from '../native/types.js';
import type { ParentOptions } from '../options/job.js';

/** Numbers a job takes in `NativeFlows.layout`. */
const STRIDE = 7;

/** Index of a job that was written, or a parent that exists. */
export type EncodedParent = number | ParentOptions | undefined;

/** A parent that the caller names. What is no object has no id and no queue: a number, say, is not the place of a job among those that are added. */
export function namedParent(parent: ParentOptions | null | undefined): ParentOptions | undefined {
  return parent ? (Object(parent) as ParentOptions) : undefined;
}

/** Writes jobs in the layout of `NativeFlows`, each behind its parent. */
export class FlowEncoder {
  private readonly text = new LongText();
  private count = 0;
  private layout = new Int32Array(16 * STRIDE);
  private readonly queues: string[] = [];
  private readonly queueIndexes = new Map<string, number>();
  private readonly parents: string[] = [];
  private readonly opts: string[] = [];
  private readonly optsIndexes = new Map<string, number>();
  // those of the job that was written last: the next one is often like it
  private lastQueue: object | undefined = undefined;
  private lastQueueIndex = 0;
  private lastOpts: string | undefined = undefined;
  private lastOptsIndex = 0;

  /**
   * Adds a job.
   * @param id undefined: the queue's next number; of a plain child of a job that was written, a UUID that is made for it
   * @param isGiven whether the user chose the id, so that a job of it may exist
   * @param data the JSON text of its data
   * @returns its index
   */
  append(
    queue: { prefix: string; name: string },
    parent: EncodedParent,
    id: string | undefined,
    isGiven: boolean,
    name: string,
    data: string,
    { text }: CheckedOptions,
  ): number {
    const at = STRIDE * this.count;
    if (at === this.layout.length) this.layout = doubled(this.layout);
    const { layout } = this;
    layout[at] = this.queueIndex(queue);
    layout[at + 1] = this.parentNumber(parent);
    layout[at + 2] = id === undefined ? 0 : id.length;
    layout[at + 3] = name.length;
    layout[at + 4] = data.length;
    layout[at + 5] = this.optsIndex(text);
    layout[at + 6] = isGiven ? 1 : 0;
    if (id !== undefined) this.text.append(id);
    this.text.append(name, data);
    return this.count++;
  }

  take(): NativeFlows {
    const { queues, parents, text, layout, opts } = this;
    return { queues, parents, text: text.take(), layout: layout.slice(0, STRIDE * this.count), opts };
  }

  private queueIndex(queue: { prefix: string; name: string }): number {
    if (queue === this.lastQueue) return this.lastQueueIndex;
    const { prefix, name } = queue;
    const key = `${prefix}:${name}`;
    let index = this.queueIndexes.get(key);
    if (index === undefined) {
      index = this.queues.push(prefix, name) / 2 - 1;
      this.queueIndexes.set(key, index);
    }
    this.lastQueue = queue;
    return (this.lastQueueIndex = index);
  }

  private parentNumber(parent: EncodedParent): number {
    if (parent === undefined) return 0;
    if (typeof parent === 'number') return parent + 1;
    return -this.parents.push(String(parent.queue), String(parent.id)) / 2;
  }

  private optsIndex(text: string): number {
    if (text === this.lastOpts) return this.lastOptsIndex;
    let index = this.optsIndexes.get(text);
    if (index === undefined) {
      index = this.opts.push(text) - 1;
      this.optsIndexes.set(text, index);
    }
    this.lastOpts = text;
    return (this.lastOptsIndex = index);
  }
}
