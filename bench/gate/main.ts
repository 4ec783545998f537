/**
 * The gate: `npm run bench:gate`. This tree against the build of another commit. Reading order: contest.ts (the pairs), interval.ts (when they
 * decide), judgement.ts (what follows), instructions.ts (what is counted, not timed), builds.ts (where the base comes from).
 */
import { join } from 'node:path';
import { runProgram, UsageError } from '../ending.js';
import { SideFailed } from '../pairs.js';
import { Progress } from '../screen.js';
import { parseConnection, Server } from '../server.js';
import { readGateArguments } from './arguments.js';
import type { GateArguments } from './arguments.js';
import { buildOf } from './builds.js';
import { contest } from './contest.js';
import type { Contest } from './contest.js';
import { commitOf, defaultBase, engineDiff, ROOT } from './git.js';
import { countBoth, lineOf, outcomeOf } from './instructions.js';
import { conclusion, exitCodes, judge, linesOf, worstOf } from './judgement.js';
import type { Outcome, Surroundings } from './judgement.js';
import { LOAD_FLOOR, loadPerCore } from './load.js';
import { loadFirst, loadPath, ringOf } from './ring.js';

async function main(argv: readonly string[]): Promise<number> {
  const asked = readGateArguments(argv);
  const base = asked.base === undefined ? defaultBase() : commitOf(asked.base);
  const name = base.slice(0, 9);
  // building the base is load, and ours: what there is without it counts
  const about = { changes: engineDiff(base), load: loadPerCore() };
  console.log(`this tree against ${name}, on a machine with a load of ${about.load.toFixed(2)} a core`);
  const outcomes: Outcome[] = [];
  if (asked.instructions) {
    const counted = await countBoth(base, console.log);
    for (const each of counted) console.log(lineOf(each));
    outcomes.push(outcomeOf(counted));
  }
  if (asked.scenarios.length > 0) {
    const isTooBusy = about.load > LOAD_FLOOR && about.changes !== '' && !asked.evenIfBusy;
    if (isTooBusy) {
      const most = `a load of ${LOAD_FLOOR} a core is the most`;
      console.log(`Not judged: ${most}. Run it again when it is quiet, or with --even-if-busy.`);
    }
    outcomes.push(isTooBusy ? 'not judged' : await contests(asked, base, about));
  }
  return exitCodes[worstOf(outcomes)];
}

/** Pairs of runs of each scenario, and what follows from them. */
async function contests(asked: GateArguments, base: string, about: Surroundings): Promise<Outcome> {
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench:gate` starts a private one and sets it');
  const name = base.slice(0, 9);
  const server = await Server.connect(parseConnection(url));
  const progress = new Progress(asked.scenarios.length);
  const ring = ringOf(server, progress);
  const path = await buildOf(base, (line) => progress.say(line));
  const first = await loadFirst(path);
  const sides = ring(await loadPath(name, path), await loadPath('this tree', join(ROOT, 'dist', 'esm', 'index.js')));
  const held: Contest[] = [];
  for (const scenario of asked.scenarios) {
    try {
      const there = await sides.serverOf(scenario.regime);
      const done = await there.guard(contest({ ...sides, server: there }, first, scenario));
      held.push(done);
      progress.told(linesOf(done));
    } catch (error) {
      if (!(error instanceof SideFailed)) throw error;
      // a scenario that the base does not know how to run says nothing about this tree
      progress.told([`${scenario.name}: ERROR in ${sides.libraries[error.side].name}: ${error.message}`]);
      if (error.side === 'challenger') return 'fails';
    }
  }
  await sides.serverOf('plain');
  server.close();
  console.log(`\n${conclusion(held, about, name)}`);
  return worstOf(held.map((done) => judge(done, about)));
}

runProgram(main);
