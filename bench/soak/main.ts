/**
 * The soak: `npm run soak`. Jobs of every kind at full speed for 20 minutes (`--minutes N`), with the memory of this process and of Redis
 * sampled; then queues of great sizes (`--only <text>`, `--scale 0.1`), each with the longest time for which one command blocked the server.
 * Reading order: endless.ts, sizes.ts, crowds.ts, server.ts. Writes benchmarks/soak-<date>-<commit>.md unless told `--only` or `--scale`.
 */
import { randomBytes } from 'node:crypto';
import { runProgram, UsageError } from '../ending.js';
import { writeText } from '../files.js';
import { describeMachine, describeSource, loadAverage } from '../machine.js';
import { describeHeld } from '../../__test__/support/watchdog.js';
import { readOptions } from '../options.js';
import { endless, slope, type Endless } from './endless.js';
import { WatchedServer } from './server.js';
import { measureSize, sizes, type Size } from './sizes.js';

const MB = 2 ** 20;
const LONGEST =
  'Below, "longest" is the longest time for which one command blocked the server, by the server\'s own clock (`SLOWLOG`): time in which the ' +
  'machine ran something else in its place is in it.';

const USAGE = 'usage: npm run soak [-- --minutes N --only TEXT --scale N]';

function readArguments(argv: readonly string[]): { minutes: number; scale: number; only: string | undefined } {
  const values = readOptions(argv, USAGE, {
    minutes: { type: 'string', default: '20' },
    only: { type: 'string' },
    scale: { type: 'string', default: '1' },
  });
  const [minutes, scale] = [Number(values.minutes), Number(values.scale)];
  if (!(minutes >= 0 && scale > 0)) throw new UsageError(`--minutes and --scale take numbers\n\n${USAGE}`);
  return { minutes, scale, only: values.only };
}

async function main(argv: readonly string[]): Promise<number> {
  const { minutes, scale, only } = readArguments(argv);
  const url = process.env.REDIS_URL;
  if (!url) throw new UsageError('REDIS_URL names no server; `npm run soak` starts a private one and sets it');
  const mark = `soak-${randomBytes(4).toString('hex')}`;
  const server = await WatchedServer.connect(url);
  const startedAt = new Date();
  const load = loadAverage();
  if (minutes > 0) console.log(`jobs of every kind, for ${minutes} minutes`);
  const soaked = minutes > 0 ? await endless(server, mark, minutes) : undefined;
  const measured: Size[] = [];
  for (const name of Object.keys(sizes)) {
    if (only === undefined || name.includes(only)) measured.push(await measureSize(server, name, mark, scale));
  }
  const { cpu, cores, memoryGb, system, node } = describeMachine();
  const { commit, changes } = describeSource();
  const text = [
    `# Soak of ${startedAt.toISOString().slice(0, 10)}, commit ${commit}${changes.length > 0 ? ' and changes' : ''}`,
    [
      `${cpu}, ${cores} cores, ${memoryGb} GB, ${system}; Node ${node}; ${server.version}`,
      `load average ${load} at the start, ${loadAverage()} at the end`,
      `\`npm run soak -- --minutes ${minutes}${scale === 1 ? '' : ` --scale ${scale}`}\``,
    ]
      .map((line) => `- ${line}`)
      .join('\n'),
    ...(soaked && soaked.looks.length > 0 ? [reportSoak(soaked)] : []),
    ...(measured.length > 0 ? [LONGEST] : []),
    ...measured.map(reportSize),
  ].join('\n\n');
  await server.close();
  console.log(`\n${text}`);
  if (only === undefined && scale === 1) {
    console.log(writeText(`soak-${startedAt.toISOString().slice(0, 10)}-${commit}`, text));
  }
  return 0;
}

function reportSoak({ looks, longest }: Endless): string {
  const last = looks[looks.length - 1];
  const columns = ['heap', 'native', 'redis'] as const;
  const titles = { heap: 'Node heap', native: 'process beyond the heap', redis: 'Redis' };
  const rows = columns.map((what) => {
    const values = looks.slice(Math.floor(looks.length / 4)).map((look) => look[what] / MB);
    const perHour = (slope(looks, what) * 3_600) / MB;
    const perJob = slope(looks, what) / (last.jobs / last.seconds);
    const cells = [Math.min(...values), Math.max(...values), perHour].map((value) => value.toFixed(1));
    return `| ${titles[what]} | ${cells.join(' | ')} | ${perJob.toFixed(2)} |`;
  });
  return [
    '## At full speed',
    `${(last.seconds / 60).toFixed(1)} minutes, ${last.jobs.toLocaleString('en')} jobs of every kind, ${Math.round(last.jobs / last.seconds).toLocaleString('en')} a second. ` +
      'Of the samples (one in five seconds, after a collection of garbage) the first quarter is left out. ' +
      `The longest script took ${describeHeld(longest.script)}; the longest pause of this process, but for those collections, ${describeHeld(longest.pause)}.`,
    [
      '| MB of | least | most | slope, MB an hour | slope, bytes a job |',
      '| --- | ---: | ---: | ---: | ---: |',
      ...rows,
    ].join('\n'),
  ].join('\n\n');
}

function reportSize({ name, parts }: Size): string {
  const rows = parts.map(({ what, seconds, cpuSeconds, blocked, notes }) => {
    return `| ${what} | ${seconds.toFixed(1)} | ${cpuSeconds.toFixed(1)} | ${blocked.ms.toFixed(1)} | ${blocked.by} | ${notes} |`;
  });
  const head = ['| Part | s | CPU of Redis, s | longest, ms | by | |', '| --- | ---: | ---: | ---: | --- | --- |'];
  return `## ${name[0].toUpperCase()}${name.slice(1)}\n\n${[...head, ...rows].join('\n')}`;
}

runProgram(main);
