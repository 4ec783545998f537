/** What `.ci/bench.mjs` has installed below `packages/`: no package of this tree, and none that its users get. */
import { createRequire } from 'node:module';
import { messageOf, UsageError } from '../ending.js';

const require = createRequire(new URL('packages/package.json', import.meta.url));

/** What a package exports, as its adapter says it is. */
export function loadPackage<T>(name: string): { readonly exported: T; readonly version: string } {
  try {
    const { version } = require(`${name}/package.json`) as { readonly version: string };
    return { exported: require(name) as T, version };
  } catch (error) {
    throw new UsageError(`there is no ${name} to measure (npm run bench -- --peers installs it): ${messageOf(error)}`);
  }
}
