// What CI runs, for the machine of whoever is about to push.
import { counts } from './counts.mjs';
import { lint } from './lint.mjs';
import { main, runAll } from './step.mjs';
import { test } from './test.mjs';

await main(() => runAll([lint, test, counts]));
