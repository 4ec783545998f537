/**
 * `npm run bench:migrate`: a BullMQ system with a million jobs in all states moves here while its producer adds and its workers run, and moves
 * back; each job is then accounted for. Writes benchmarks/migrate-<date>-<commit>.md.
 * Reading order: system.ts, traffic.ts, command.ts, account.ts, report.ts.
 */
import { randomBytes } from 'node:crypto';
import { createRequire } from 'node:module';
import { interruption, runProgram, UsageError } from '../ending.js';
import { describeMachine, describeSource, loadAverage } from '../machine.js';
import { readOptions } from '../options.js';
import { parseConnection, Server } from '../server.js';
import { readAccount, type Account } from './account.js';
import { jobsIn, migrate, migrateRest, SlowScripts } from './command.js';
import { textOf, writeReport, type MigrateReport, type Way } from './report.js';
import { loadLibraries, partsOf, System } from './system.js';
import { Traffic } from './traffic.js';

const USAGE = 'usage: npm run bench:migrate [-- --jobs N]   (1,000,000 unless told; fewer leave no report)';
const ALL_JOBS = 1_000_000;
/** Jobs that the producer may add. */
const MOST_ADDED = 4_000_000;
const LIMIT_MS = 1_800_000;

/** What a run works with. */
interface Stage {
  readonly system: System;
  readonly traffic: Traffic;
  readonly slow: SlowScripts;
  readonly url: string;
  readonly most: number;
}

async function main(argv: readonly string[]): Promise<number> {
  const jobs = readJobs(argv);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench:migrate` starts a private one and sets it');
  const server = await Server.connect(parseConnection(url));
  const mark = `chasqui-migrate-${randomBytes(4).toString('hex')}`;
  const system = new System(await loadLibraries(), server.connection, mark);
  const most = jobs + MOST_ADDED;
  const slow = await SlowScripts.watch(server.connection);
  const stage: Stage = { system, traffic: new Traffic(system, most), slow, url, most };
  const [startedAt, load] = [new Date(), loadAverage()];
  const ran = await server.guard(Promise.race([run(stage, jobs), interruption()]));
  const report: MigrateReport = {
    startedAt: startedAt.toISOString(),
    seconds: Math.round((Date.now() - startedAt.getTime()) / 1e3),
    machine: describeMachine(),
    source: describeSource(),
    server: server.version,
    bullmq: (createRequire(import.meta.url)('bullmq/package.json') as { readonly version: string }).version,
    load: [load, loadAverage()],
    ...ran,
  };
  console.log(`\n${textOf(report)}`);
  await system.close();
  slow.close();
  if (process.env.BENCH_OWNS_REDIS !== '1') await server.sweep(mark);
  if (jobs >= ALL_JOBS) console.log(writeReport(report));
  server.close();
  return Object.values(report.wrong).every((count) => count === 0) ? 0 : 1;
}

type Ran = Pick<MigrateReport, 'there' | 'back' | 'accounts' | 'wrong'>;

async function run(stage: Stage, jobs: number): Promise<Ran> {
  const { system, traffic, most } = stage;
  await told('the system has its jobs', () => system.fill(partsOf(jobs)));
  const before = await told('they are accounted for', () => readAccount(system, 'theirs', most));
  await traffic.produceTo('theirs');
  for (const side of ['theirs', 'ours'] as const) traffic.startWorkers(side);

  const there = await told('what there was has moved', () => moved(stage, []));
  await traffic.produceTo('ours');
  await traffic.stopWorkers('theirs');
  await told('the rest has moved', () => migrateRest(system.names, stage.url, []));
  await traffic.stopProducer();
  await traffic.stopWorkers('ours');
  const here = await told('it is accounted for', () => readAccount(system, 'ours', most));

  await traffic.produceTo('ours');
  for (const side of ['ours', 'theirs'] as const) traffic.startWorkers(side);
  const back = await told('what there was has moved back', () => moved(stage, ['--back']));
  await traffic.produceTo('theirs');
  await traffic.stopWorkers('ours');
  await told('the rest has moved back', () => migrateRest(system.names, stage.url, ['--back']));
  await traffic.stopProducer();
  await told('all jobs have run', () => traffic.untilAllRan(LIMIT_MS));
  await traffic.stopWorkers('theirs');
  const after = await told('it is accounted for', () => readAccount(system, 'theirs', most));
  const left = await readAccount(system, 'ours', most);
  const wrong = { ...wrongIn(stage, { before, here, after }), 'left here': left.jobs };
  return { there, back, accounts: { before: bare(before), here: bare(here), after: bare(after) }, wrong };
}

/** Moves all there is, while the traffic goes on. */
async function moved({ system, traffic, slow, url }: Stage, args: readonly string[]): Promise<Way> {
  await slow.forget();
  const [{ theirs, ours }, added] = [{ ...traffic.ranBy }, traffic.added];
  const told = await migrate(system.names, url, args);
  return {
    jobs: jobsIn(told),
    seconds: told.seconds,
    longestScriptMs: await slow.longestMs(),
    ranByTheirs: traffic.ranBy.theirs - theirs,
    ranByOurs: traffic.ranBy.ours - ours,
    added: traffic.added - added,
  };
}

function wrongIn(
  { system, traffic }: Stage,
  { before, here, after }: Readonly<Record<'before' | 'here' | 'after', Account>>,
): Record<string, number> {
  const { neverRan, ranTwice } = traffic.account();
  const missing = system.runnable.filter((n) => after.seen[n] !== 1).length;
  const isOther = (account: Account) =>
    account.kept !== before.kept || account.digest !== before.digest || account.schedulers !== before.schedulers;
  return {
    'never ran': neverRan,
    'ran more than once': ranTwice,
    'not there once': missing,
    'doubled here': here.doubled,
    'parents without all results': traffic.wrongParents,
    'accounts of kept jobs that differ': [here, after].filter(isOther).length,
    'errors of workers': traffic.errors.length,
  };
}

function bare({ seen: _, ...account }: Account): Omit<Account, 'seen'> {
  return account;
}

/** Does a part, and tells how long it took. */
async function told<T>(what: string, part: () => Promise<T>): Promise<T> {
  const begin = performance.now();
  const done = await part();
  console.log(`${what} (${((performance.now() - begin) / 1e3).toFixed(1)} s)`);
  return done;
}

function readJobs(argv: readonly string[]): number {
  const { jobs } = readOptions(argv, USAGE, { jobs: { type: 'string', default: String(ALL_JOBS) } });
  if (Number.isSafeInteger(Number(jobs)) && Number(jobs) >= 100) return Number(jobs);
  throw new UsageError(`--jobs takes a number of jobs, 100 at least, not ${jobs}\n\n${USAGE}`);
}

runProgram(main);
