// In a project that has the package installed: the quick start by `import`.
import * as library from 'LIBRARY';
import { quickStart } from './quick-start.mjs';

await quickStart(library);
