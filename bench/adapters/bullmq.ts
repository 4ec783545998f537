import { createRequire } from 'node:module';
import { FlowProducer, Queue, Worker } from 'bullmq';
import type { JobLibrary } from './library.js';

/** The BullMQ that is installed beside us. `name` tells two of them apart when BullMQ is measured against itself. */
export function loadBullmq(name = 'bullmq'): JobLibrary {
  return { name, version: installedVersion(), Queue, Worker, FlowProducer };
}

function installedVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)('bullmq/package.json');
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error('bullmq/package.json has no version');
}
