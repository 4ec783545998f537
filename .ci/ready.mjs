// What CI runs, for the machine of whoever is about to push.
import { audit } from './audit.mjs';
import { counts } from './counts.mjs';
import { lint } from './lint.mjs';
import { main, runAll } from './step.mjs';
import { test } from './test.mjs';

await main(() => runAll([lint, audit, test, counts]));
