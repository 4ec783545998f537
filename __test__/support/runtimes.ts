import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { PACKAGES } from './registry.js';

/** The executables of other runtimes, as the optional packages for this platform bring them. */
export const bun = executable('@oven', 'bin', 'bun');
export const deno = executable('@deno', 'deno');
/** The oldest minor version that the package runs on. */
export const oldestBun = join(PACKAGES, `bun-oldest-${process.platform}-${process.arch}`, 'bin', 'bun');

function executable(scope: string, ...path: string[]): string {
  const [platform] = readdirSync(join(PACKAGES, scope));
  return join(PACKAGES, scope, platform, ...path);
}
