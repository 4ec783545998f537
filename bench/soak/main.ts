/**
 * The soak: `npm run soak`. Jobs of every kind at full speed for 20 minutes (`--minutes N`), with the memory of this process and of Redis
 * sampled; then queues of great sizes (`--only <text>`, `--scale 0.1`), each with the longest time for which one command blocked the server.
 * Reading order: endless.ts, sizes.ts, crowds.ts, server.ts. Writes benchmarks/soak-<date>-<commit>.md when nothing was left out.
 */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { describeMachine, describeSource, loadAverage } from '../machine.js';
import { describeHeld } from '../../__test__/support/watchdog.js';
import { endless, slope, type Endless } from './endless.js';
import { WatchedServer } from './server.js';
import { measureSize, sizes, type Size } from './sizes.js';

const MB = 2 ** 20;
const LONGEST =
  'Below, "longest" is the longest time for which one command blocked the server, by the server\'s own clock (`SLOWLOG`): time in which the ' +
  'machine ran something else in its place is in it.';

const USAGE = 'usage: npm run soak [-- --minutes N --only TEXT --scale N]';

function readArguments(): { minutes: number; scale: number; only: string | undefined } {
  try {
    const { values } = parseArgs({
      options: { minutes: { type: 'string' }, only: { type: 'string' }, scale: { type: 'string' } },
    });
    const [minutes, scale] = [Number(values.minutes ?? 20), Number(values.scale ?? 1)];
    if (!(minutes >= 0 && scale > 0)) throw new Error('minutes and scale are numbers');
    return { minutes, scale, only: values.only };
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    process.exit(2);
  }
}

async function main(): Promise<void> {
  const { minutes, scale, only } = readArguments();
  const url = process.env.REDIS_URL;
  if (!url) throw new Error('REDIS_URL names no server; `npm run soak` starts a private one and sets it');
  const mark = `soak-${randomBytes(4).toString('hex')}`;
  const server = await WatchedServer.connect(url);
  const startedAt = new Date();
  const load = loadAverage();
  const soaked = minutes > 0 ? await soak(server, mark, minutes) : undefined;
  const measured: Size[] = [];
  for (const name of Object.keys(sizes)) {
    if (only === undefined || name.includes(only)) measured.push(await measureSize(server, name, mark, scale));
  }
  const { cpu, cores, memoryGb, system, node } = describeMachine();
  const { commit, changes } = describeSource();
  const text = [
    `# Soak of ${startedAt.toISOString().slice(0, 10)}, commit ${commit}${changes.length > 0 ? ' and changes' : ''}`,
    [
      `${cpu}, ${cores} cores, ${memoryGb} GB, ${system}; Node ${node}; server ${server.version}`,
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
  if (only !== undefined || scale !== 1) return;
  const path = fileURLToPath(
    new URL(`../../benchmarks/soak-${startedAt.toISOString().slice(0, 10)}-${commit}.md`, import.meta.url),
  );
  writeFileSync(path, `${text}\n`);
  console.log(path);
}

async function soak(server: WatchedServer, mark: string, minutes: number): Promise<Endless> {
  console.log(`jobs of every kind, for ${minutes} minutes`);
  return endless(server, mark, minutes);
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

await main();
