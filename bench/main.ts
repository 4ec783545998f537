/**
 * The bench: ChasquiMQ against BullMQ, in one process, on one Redis, through the API they share.
 * Reading order: scenarios/ (what is done), measure.ts (what is read), plan.ts (what there is time for), run.ts and pairs.ts (in which order),
 * report.ts (what is said).
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { loadBullmq, loadTunedBullmq } from './adapters/bullmq.js';
import { loadChasquimq } from './adapters/chasquimq.js';
import type { JobLibrary } from './adapters/library.js';
import { readArguments, scenariosOf } from './arguments.js';
import { measureBeneath } from './beneath.js';
import { readChartData } from './charts/data.js';
import { drawCharts } from './charts/draw.js';
import { writeTables } from './charts/tables.js';
import { interruption, messageOf, runProgram, UsageError } from './ending.js';
import type { Counted } from './counts/baseline.js';
import { reservations, writeReport } from './files.js';
import { LOAD_FLOOR, loadPerCore } from './gate/load.js';
import { appendHistory, drifts, entryOf, readHistory } from './history.js';
import type { HistoryEntry } from './history.js';
import { describeMachine, describeSource, loadAverage } from './machine.js';
import { fullMode, quickMode } from './pairs.js';
import { formatRatio, isJudged, notJudged, rowsOf, withoutRatio } from './report.js';
import type { Circumstances, Row } from './report.js';
import { Servers } from './regimes.js';
import { runAll } from './run.js';
import { tablesForScreen, Progress } from './screen.js';
import { parseConnection, Server } from './server.js';

/**
 * Returns the exit code: 1 when a side threw in a scenario, or, of what a quick run does not judge, a floor was missed or a figure has fallen over ten
 * runs; 3 when the machine is too busy for a whole run.
 */
async function main(argv: readonly string[]): Promise<number> {
  const asked = readArguments(argv);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run bench` starts a private one and sets it');
  const mode = asked.quick ? quickMode : fullMode;
  const rounds = asked.rounds ?? mode.rounds;
  const ownsServer = process.env.BENCH_OWNS_REDIS === '1';
  const isOfThisTree = !process.env.CHASQUI_MODULE;
  const partial = asked.scenarios.length < scenariosOf(asked.quick).length || rounds < mode.rounds;
  const kinds = {
    kind: asked.quick ? 'quick' : 'full',
    self: asked.self,
    partial: partial || (!asked.quick && !(ownsServer && isOfThisTree)),
    busy: !asked.quick && loadPerCore() > LOAD_FLOOR,
  } as const;
  if (kinds.busy && !kinds.self && !kinds.partial && !asked.evenIfBusy) {
    console.log(
      `Not begun: the load is ${loadPerCore().toFixed(2)} a core, and a whole run takes ${LOAD_FLOOR} at most.`,
    );
    console.log('Run it again when it is quiet, or with --even-if-busy: its report is then named so.');
    return 3;
  }
  const base = await loadBullmq();
  const libraries = { base, challenger: asked.self ? await loadBullmq('bullmq again') : await loadOurs() };
  const server = await Server.connect(parseConnection(url));
  const servers = new Servers(server);
  const mark = `chasqui-bench-${randomBytes(4).toString('hex')}`;

  const startedAt = new Date();
  const loadAtStart = loadAverage();
  const source = describeSource();
  const running = runAll(
    {
      libraries,
      // a quick run has no time to choose
      variants: asked.self || asked.quick ? [] : [await loadTunedBullmq()],
      server,
      serverOf: (regime) => servers.of(regime),
      mark,
      mode: { ...mode, rounds },
      observer: new Progress(asked.scenarios.length),
      interrupted: interruption(),
      ownsServer,
    },
    asked.scenarios,
  );
  const results = await server.guard(running);
  await servers.of('plain');
  const long = asked.isNamed ? [] : scenariosOf(false).filter((each) => !asked.scenarios.includes(each));
  const leftOut = asked.scenarios.filter((each) => results.every(({ scenario }) => scenario !== each));
  const loadAtEnd = loadAverage();
  const beneath = asked.quick ? undefined : await server.guard(measureBeneath(server));
  const about = {
    startedAt: startedAt.toISOString(),
    seconds: (Date.now() - startedAt.getTime()) / 1e3,
    command: ['bench', ...argv].join(' '),
    ...kinds,
    machine: describeMachine(),
    source,
    server: server.version,
    libraries: {
      base: { name: base.name, version: base.version },
      challenger: { name: libraries.challenger.name, version: libraries.challenger.version },
    },
    loadAtStart,
    loadAtEnd,
    ...(beneath && { beneath }),
    ...(leftOut.length > 0 && { leftOut: leftOut.map(({ name }) => name) }),
    ...(long.length > 0 && { long: long.map(({ name }) => name) }),
  } as const;
  console.log(`\n${tablesForScreen(about, results)}\n`);
  const [samples, report] = writeReport(about, results);
  console.log(asked.quick ? `The whole report: ${report}` : `${samples}\n${report}`);
  const rows = rowsOf(results, isJudged(about));
  for (const row of rows.filter(({ ratio }) => !ratio)) console.log(withoutRatio(row, about.libraries));
  for (const line of notJudged(rows)) console.log(line);
  const complaints = rows.flatMap((row) =>
    row.met === false && row.ratio ? [missedFloor(row, row.ratio.median)] : [],
  );
  const hasFaults = results.some((result) => result.faults.length > 0);
  if (reservations(about, results).length === 0) {
    complaints.push(...(await remember(about, rows, url)));
    const data = readChartData();
    for (const path of [...(await drawCharts(data)), ...(await writeTables(data))]) console.log(path);
  }
  await servers.close();
  for (const complaint of complaints) console.log(complaint);
  return hasFaults || complaints.length > 0 ? 1 : 0;
}

function missedFloor({ title, metric, target }: Row, ratio: number): string {
  return `BELOW THE FLOOR  ${title}, ${metric}: ${formatRatio(ratio)}, and ${target?.text ?? ''} is wanted`;
}

/** Adds the run to the history, and tells what has fallen over the last ten of them. */
async function remember(about: Circumstances, rows: readonly Row[], url: string): Promise<string[]> {
  const counts = await countInAnotherProcess(url);
  console.log(appendHistory(entryOf(about, rows, counts)));
  return drifts(readHistory()).map(
    ({ scenario, metric, left, from, to }) =>
      `FALLEN  ${scenario}, ${metric}: ${formatRatio(left)} of what it was ten runs ago (${from} to ${to})`,
  );
}

/** Counting puts itself around the addon, and must not be around it here. */
async function countInAnotherProcess(url: string): Promise<HistoryEntry['counts']> {
  const program = fileURLToPath(new URL('counts/main.ts', import.meta.url));
  const args = ['--import', 'tsx', '--no-warnings', program, '--json'];
  const env = { ...process.env, REDIS_URL: url };
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { env, maxBuffer: 2 ** 26 });
    return (JSON.parse(stdout) as Counted).counts;
  } catch (error) {
    console.error(`the counts are not in the history: ${messageOf(error)}`);
    return undefined;
  }
}

async function loadOurs(): Promise<JobLibrary> {
  return loadChasquimq().catch((error: unknown) => {
    throw new UsageError(`${messageOf(error)}\n${messageOf(error instanceof Error ? error.cause : '')}`);
  });
}

runProgram(main);
