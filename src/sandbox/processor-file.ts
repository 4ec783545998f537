import { existsSync } from 'node:fs';
import { extname } from 'node:path';

/**
 * The file that `processor` names.
 * @throws Error with BullMQ's text when there is none; TypeError for what is no path
 */
export function processorFile(processor: string | URL): string {
  if (processor instanceof URL) {
    if (!existsSync(processor)) throw new Error(`URL ${processor.href} does not exist in the local file system`);
    return processor.href;
  }
  const file = withExtension(processor);
  if (!existsSync(file)) throw new Error(`File ${file} does not exist`);
  return processor;
}

/** A path may leave `.js` out. */
export function withExtension(path: string): string {
  return /^\.(?:js|ts|flow|cjs|mjs)$/.test(extname(path)) ? path : `${path}.js`;
}
