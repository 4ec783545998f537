import type { CheckedOptions } from './job-options.js';
import type { NativeFlows } from '../native/types.js';
import type { ParentOptions } from '../options/job.js';

/** Numbers a job takes in `NativeFlows.layout`. */
const STRIDE = 7;

/** Index of a job that was written, or a parent that exists. */
export type EncodedParent = number | ParentOptions | undefined;

/** Writes jobs in the layout of `NativeFlows`, each behind its parent. */
export class FlowEncoder {
  private text = '';
  private readonly layout: number[] = [];
  private readonly queues: string[] = [];
  private readonly queueIndexes = new Map<string, number>();
  private readonly parents: string[] = [];
  private readonly opts: string[] = [];
  private readonly optsIndexes = new Map<string, number>();

  /** Number of jobs written. */
  get size(): number {
    return this.layout.length / STRIDE;
  }

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
    const index = this.size;
    const idText = id ?? '';
    this.layout.push(
      this.queueIndex(queue),
      this.parentNumber(parent),
      idText.length,
      name.length,
      data.length,
      indexIn(this.opts, this.optsIndexes, text),
      isGiven ? 1 : 0,
    );
    this.text += idText;
    this.text += name;
    this.text += data;
    return index;
  }

  take(): NativeFlows {
    const { queues, parents, text, layout, opts } = this;
    return { queues, parents, text, layout: Int32Array.from(layout), opts };
  }

  private queueIndex({ prefix, name }: { prefix: string; name: string }): number {
    const key = `${prefix}:${name}`;
    let index = this.queueIndexes.get(key);
    if (index === undefined) {
      index = this.queues.push(prefix, name) / 2 - 1;
      this.queueIndexes.set(key, index);
    }
    return index;
  }

  private parentNumber(parent: EncodedParent): number {
    if (parent === undefined) return 0;
    if (typeof parent === 'number') return parent + 1;
    return -this.parents.push(String(parent.queue), String(parent.id)) / 2;
  }
}

function indexIn(list: string[], indexes: Map<string, number>, text: string): number {
  let index = indexes.get(text);
  if (index === undefined) {
    index = list.push(text) - 1;
    indexes.set(text, index);
  }
  return index;
}
