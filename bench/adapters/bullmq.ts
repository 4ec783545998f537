import { createRequire } from 'node:module';
import { messageOf, UsageError } from '../ending.js';
import type { JobLibrary } from './library.js';

/** The BullMQ that is installed beside us. `name` tells two of them apart when BullMQ is measured against itself. */
export async function loadBullmq(name = 'bullmq'): Promise<JobLibrary> {
  const { Queue, Worker, FlowProducer, QueueEvents } = await import('bullmq').catch((error: unknown) => {
    throw new UsageError(`there is no BullMQ to measure against (npm ci installs it): ${messageOf(error)}`);
  });
  return { name, version: installedVersion(), Queue, Worker, FlowProducer, QueueEvents, address: 'bullmq' };
}

function installedVersion(): string {
  const manifest: unknown = createRequire(import.meta.url)('bullmq/package.json');
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error('bullmq/package.json has no version');
}
