// The quick start with the package as it was built.
import * as chasquimq from '../../../dist/esm/index.js';
import { quickStart } from './quick-start.mjs';

await quickStart(chasquimq);
