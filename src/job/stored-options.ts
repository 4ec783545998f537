import { normaliseOptions, optionsFromText } from '../add/job-options.js';
import type { JobsOptions } from '../options/job.js';
import type { ParentKeys } from '../types/parent.js';

/** A job's options from the text that is stored. Who the parent is was stored beside them. */
export function storedOptions(text: string, parent: ParentKeys | undefined): JobsOptions {
  const opts = normaliseOptions(optionsFromText(text));
  // BullMQ stores it there, too; it is the job's
  delete opts.repeatJobKey;
  if (parent?.id !== undefined) opts.parent = { id: parent.id, queue: parent.queueKey };
  return opts;
}
