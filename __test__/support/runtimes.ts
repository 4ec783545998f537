import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './registry.js';

/** The executables of other runtimes, as the optional packages for this platform bring them. */
export const bun = executable('@oven', 'bin', 'bun');
export const deno = executable('@deno', 'deno');

function executable(scope: string, ...path: string[]): string {
  const [platform] = readdirSync(join(ROOT, 'node_modules', scope));
  return join(ROOT, 'node_modules', scope, platform, ...path);
}
