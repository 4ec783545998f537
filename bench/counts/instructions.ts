/** Instructions that the engine spends on a job on its own ways, counted by valgrind's callgrind on `chasquimq-counts`. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { UsageError } from '../ending.js';
import { INSTRUCTIONS } from './baseline.js';
import type { Counts } from './count.js';

const PROGRAM = fileURLToPath(new URL('../../target/release/chasquimq-counts', import.meta.url));
export const instructionParts = ['encode-one', 'encode-many', 'decode', 'complete', 'fail'] as const;
/** As in the program. */
const JOBS_A_ROUND = 256;
const ROUNDS = 10;
/** The C library chooses how to copy by these. */
const CPU_FLAGS = ['avx2', 'erms', 'fsrm'];

/** What the counts depend on beside the code. Undefined where they cannot be taken. */
export function toolchain(): string | undefined {
  const valgrind = answerOf('valgrind', ['--version']);
  const rustc = answerOf('rustc', ['--version']);
  if (valgrind === undefined || rustc === undefined || !existsSync(PROGRAM)) return undefined;
  const header = (process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header;
  const libc = `libc ${header.glibcVersionRuntime ?? 'other'}`;
  return [rustc.replace(/ \(.*/, ''), process.arch, libc, valgrind, ...cpuFlags()].join(', ');
}

/** By part; the difference of two runs, of which the second has twice as many rounds: what starting and ending costs is not in it. */
export function countInstructions(): Record<string, Counts> {
  const counted = instructionParts.map((part) => {
    const [once, twice] = [collected(part, ROUNDS), collected(part, 2 * ROUNDS)];
    return [`engine-${part}`, { [INSTRUCTIONS]: Math.round((twice - once) / (ROUNDS * JOBS_A_ROUND)) }] as const;
  });
  return Object.fromEntries(counted);
}

function collected(part: string, rounds: number): number {
  const args = ['--tool=callgrind', '--callgrind-out-file=/dev/null', PROGRAM, part, String(rounds)];
  const { stderr, status } = spawnSync('valgrind', args, { encoding: 'utf8' });
  const [, instructions] = /Collected : (\d+)/.exec(stderr) ?? [];
  if (status !== 0 || instructions === undefined) throw new UsageError(`valgrind cannot run ${PROGRAM}:\n${stderr}`);
  return Number(instructions);
}

function cpuFlags(): string[] {
  try {
    const [, flags = ''] = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8')) ?? [];
    return CPU_FLAGS.filter((flag) => flags.split(' ').includes(flag));
  } catch {
    return [];
  }
}

function answerOf(command: string, args: string[]): string | undefined {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined;
  }
}
