/**
 * Finds the commit with which a scenario became slower: `npm run bench:bisect`. Every commit that is looked at is held against the good one, by the
 * gate's pairs; what lies nearer to the bad one's figure is bad.
 */
import { messageOf, runProgram, UsageError } from '../ending.js';
import { SideFailed } from '../pairs.js';
import { formatRange, formatRatio } from '../report.js';
import { Progress } from '../screen.js';
import type { Scenario } from '../scenarios/scenario.js';
import { Servers } from '../regimes.js';
import { parseConnection, Server } from '../server.js';
import { readBisectArguments } from './arguments.js';
import { buildOf } from './builds.js';
import { contest } from './contest.js';
import { commitOf, commitsBetween, subjectOf } from './git.js';
import type { Interval } from './interval.js';
import { loadFirst, loadPath, ringOf } from './ring.js';
import { firstBad } from './search.js';

/** A smaller difference of the two ends is not worth, or not open to, a search. */
const LEAST_DROP = 0.97;

/** Undefined when the commit cannot be measured. */
type Measure = (commit: string) => Promise<Interval | undefined>;

async function main(argv: readonly string[]): Promise<number> {
  const asked = readBisectArguments(argv);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench:bisect` starts a private one and sets it');
  const [good, bad] = [commitOf(asked.good), commitOf(asked.bad)];
  const commits = commitsBetween(good, bad);
  if (commits.length === 0) throw new UsageError('between these two commits nothing that is built was changed');

  const servers = new Servers(await Server.connect(parseConnection(url)));
  const server = await servers.of(asked.scenario.regime);
  const progress = new Progress(1);
  const measure = await measureAgainst(good, asked.scenario, server, progress);
  const last = await measure(bad);
  if (!last) throw new UsageError(`${bad.slice(0, 9)} cannot be measured`);
  if (last.high > LEAST_DROP) {
    console.log(`${asked.scenario.name}: no drop from ${subjectOf(good)} to ${subjectOf(bad)}: ${text(last)}`);
    return 3;
  }
  const limit = Math.sqrt(last.estimate);
  const found = await firstBad([...commits.filter((commit) => commit !== bad), bad], async (commit) => {
    const interval = await measure(commit);
    return interval && interval.estimate < limit;
  });
  console.log(`\n${asked.scenario.name}, of ${subjectOf(good)} (what is below ${formatRatio(limit)} counts as bad):\n`);
  for (const commit of found.neighbours) {
    const interval = await measure(commit);
    const mark = commit === found.commit ? '>' : ' ';
    console.log(`${mark} ${interval ? text(interval) : 'not measured'}  ${subjectOf(commit)}`);
  }
  await servers.close();
  return 0;
}

/** Measures each commit once. */
async function measureAgainst(good: string, scenario: Scenario, server: Server, progress: Progress): Promise<Measure> {
  const ring = ringOf(server, progress);
  const say = (line: string) => progress.say(line);
  const path = await buildOf(good, say);
  const first = await loadFirst(path);
  const base = await loadPath(good.slice(0, 9), path);
  const known = new Map<string, Interval | undefined>();
  return async (commit) => {
    if (known.has(commit)) return known.get(commit);
    try {
      const challenger = await loadPath(commit.slice(0, 9), await buildOf(commit, say));
      const { rulings } = await server.guard(contest(ring(base, challenger), first, scenario));
      known.set(commit, rulings[0]?.interval);
    } catch (error) {
      if (!(error instanceof SideFailed) && !(error instanceof UsageError && !server.isLost)) throw error;
      say(`${subjectOf(commit)}: left out: ${messageOf(error).split('\n').at(-1) ?? ''}`);
      known.set(commit, undefined);
    }
    const interval = known.get(commit);
    if (interval) say(`${text(interval)}  ${subjectOf(commit)}`);
    return interval;
  };
}

function text({ estimate, low, high }: Interval): string {
  return `${formatRatio(estimate)} (${formatRange(low, high)})`;
}

runProgram(main);
