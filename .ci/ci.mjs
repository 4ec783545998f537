// What CI does with a change, and `npm run ready` before a release: `node .ci/ci.mjs` what the change asks for, `node .ci/ci.mjs all` everything.
// See .ci/suites.mjs.
import { existsSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { audit } from './audit.mjs';
import { counts } from './counts.mjs';
import { lint } from './lint.mjs';
import { ask, isEntry, main, root, run, runAll, say, Stop } from './step.mjs';
import { baseOfChange, JS, suitesSince, SUITES } from './suites.mjs';

/** Brings servers of other versions, where there is such a tool. Elsewhere NEWER_SERVER may name the folder of one: .ci/server.mjs builds it. */
const GET_REDIS = join(root, '..', 'shared', 'tools', 'get-redis');
/** The newer server of the suite `scripts`. */
const NEWER = '8.2';

export async function ci([how]) {
  if (how !== undefined && how !== 'all') throw new Stop('usage: node .ci/ci.mjs [all]', 2);
  const { names, why } =
    how === 'all' ? { names: Object.keys(SUITES), why: 'all was asked for' } : suitesSince(baseOfChange());
  const wants = (name) => names.includes(name);
  say(`> suites: ${names.join(' ')} (${why})`);
  const left = Object.keys(SUITES).filter((name) => !wants(name));
  if (left.length > 0) say(`> nothing asks for: ${left.join(' ')}`);

  const tests = names.filter((name) => name in JS || name === 'rust' || name === 'types');
  const steps = {
    lint,
    audit: () => audit(),
    tests: () => testsIn({ PARITY: wants('bullmq') ? '' : 'chasquimq' }, ...tests),
    // no times: what grows here has grown on every machine
    counts: () => counts(),
    scripts: () => testScripts(),
  };
  await runAll(
    Object.entries(steps)
      .filter(([name]) => name === 'tests' || wants(name))
      .map(([, step]) => step),
  );
}

/** In a process of their own: what they are to find in their environment differs. */
function testsIn(env, ...names) {
  return run(`tests: ${names.join(' ')}`, process.execPath, [join(root, '.ci/test.mjs'), ...names], { env });
}

/**
 * A newer server, the transitions as scripts in place of functions, and half as many random operations. BullMQ itself, sentinels, clusters and the
 * programs of others know no difference.
 */
async function testScripts() {
  const folder = await newerServer();
  if (!folder) return say(`no Redis ${NEWER} on this machine: tested on one server only`);
  const half = { MODEL_OPERATIONS: '60', TWINS_OPERATIONS: '50' };
  const path = [folder, process.env.PATH].join(delimiter);
  const env = { ...half, PARITY: 'chasquimq', CHASQUIMQ_TEST_SCRIPTS: '1', REDIS_URL: '', PATH: path };
  await testsIn(env, 'rust', 'parity', 'life');
}

async function newerServer() {
  if (process.env.NEWER_SERVER) return process.env.NEWER_SERVER;
  if (!existsSync(GET_REDIS)) return undefined;
  const server = await ask(GET_REDIS, [NEWER]);
  if (!server) throw new Stop(`Redis ${NEWER} cannot be had`);
  return dirname(server);
}

if (isEntry(import.meta.url)) await main(ci);
