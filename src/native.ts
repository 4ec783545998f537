import type * as Native from '../index.js' with { 'resolution-mode': 'import' };
// @ts-expect-error -- the loader is plain JavaScript; index.d.ts, imported above, holds its types
import addon from '../index.cjs';

export type * from '../index.js' with { 'resolution-mode': 'import' };

export const native = addon as typeof Native;
