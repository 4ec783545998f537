import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { JobLibrary } from './library.js';

/**
 * The build of this tree, or the module that CHASQUI_MODULE names: the path or package name of another build, so that
 * two versions of the engine can be held against BullMQ with the same bench.
 */
const entry = process.env.CHASQUI_MODULE
  ? addressOf(process.env.CHASQUI_MODULE)
  : new URL('../../dist/esm/index.js', import.meta.url).href;

export async function loadChasquimq(): Promise<JobLibrary> {
  const version = process.env.CHASQUI_MODULE ? `from ${entry}` : versionOfThisTree();
  return loadBuild('chasquimq', version, entry);
}

/** The build that a module address leads to. */
export async function loadBuild(name: string, version: string, address: string): Promise<JobLibrary> {
  const module: unknown = await import(address).catch((cause: unknown) => {
    throw new Error(`cannot load ChasquiMQ from ${address}; is it built? (npm run build)`, { cause });
  });
  if (!exportsClasses(module))
    throw new Error(`${address} does not export Queue, Worker, FlowProducer and QueueEvents`);
  const { Queue, Worker, FlowProducer, QueueEvents } = module;
  return { name, version, Queue, Worker, FlowProducer, QueueEvents, address };
}

/** A path is meant from where the bench was started, not from this file. */
function addressOf(module: string): string {
  return /^[./]/.test(module) ? pathToFileURL(module).href : module;
}

/** Only the presence of the classes can be checked here; the scenarios prove their behaviour by counting jobs. */
function exportsClasses(
  module: unknown,
): module is Pick<JobLibrary, 'Queue' | 'Worker' | 'FlowProducer' | 'QueueEvents'> {
  return (
    typeof module === 'object' &&
    module !== null &&
    'Queue' in module &&
    'Worker' in module &&
    'FlowProducer' in module &&
    typeof module.Queue === 'function' &&
    typeof module.Worker === 'function' &&
    typeof module.FlowProducer === 'function' &&
    'QueueEvents' in module &&
    typeof module.QueueEvents === 'function'
  );
}

function versionOfThisTree(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) return String(manifest.version);
  throw new Error('package.json has no version');
}
