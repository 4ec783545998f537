/** `npm run upgrade -- --base REF`: a rolling deploy from another commit's build to this tree's, and what became of its jobs. */
import { parseArgs } from 'node:util';
import { buildOf } from '../../bench/gate/builds.js';
import { commitOf, defaultBase } from '../../bench/gate/git.js';
import { runProgram, UsageError } from '../../bench/ending.js';
import { connection } from '../support/redis.js';
import { roll } from './roll.js';

const ROUNDS = 200;

function readBase(argv: readonly string[]): string {
  try {
    const { base } = parseArgs({ args: [...argv], options: { base: { type: 'string' } } }).values;
    return base === undefined ? defaultBase() : commitOf(base);
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\nusage: npm run upgrade [-- --base REF]`);
  }
}

runProgram(async (argv) => {
  const base = readBase(argv);
  const older = await buildOf(base, console.log);
  const account = await roll({
    modules: [older, import.meta.resolve('chasquimq')],
    connection,
    queueName: `upgrade-${process.pid}`,
    rounds: ROUNDS,
  });
  const { added, lost, doubled, errors } = account;
  console.log(`${base.slice(0, 9)} and this tree on one queue, a worker of each killed: ${added} jobs,`);
  console.log(`${lost.length} lost, ${doubled.length} completed twice, ${errors.length} errors`);
  for (const text of [...lost, ...doubled, ...new Set(errors)].slice(0, 20)) console.log(`  ${text}`);
  return lost.length + doubled.length + errors.length > 0 ? 1 : 0;
});
