import type * as Native from '../index.js';
// @ts-expect-error -- the loader is plain JavaScript; index.d.ts, imported above, holds its types
import addon from '../index.cjs';

export type * from '../index.js';

export const native = addon as typeof Native;
