import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './registry.js';

/** The executables of other runtimes, as the optional packages for this platform bring them. */
export const bun = executable('@oven', 'bin', 'bun');
export const deno = executable('@deno', 'deno');
/** The oldest minor version that the package runs on (`oldest/package.json` of the clients). */
export const oldestBun = join(ROOT, 'node_modules', `bun-oldest-${process.platform}-${process.arch}`, 'bin', 'bun');

function executable(scope: string, ...path: string[]): string {
  const [platform] = readdirSync(join(ROOT, 'node_modules', scope));
  return join(ROOT, 'node_modules', scope, platform, ...path);
}
