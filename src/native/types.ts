/** The types that the addon's build writes, without the addon. */
export type * from '../../index.js';
