import * as source from '../../src/index.js';
import type { Library } from './libraries.js';

/** This package alone, held to BullMQ's types: for tests that have no counterpart to compare with. */
export const chasquimq = source as unknown as Library;
