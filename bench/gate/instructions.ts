/**
 * Instructions that the engine spends on a job on its own ways: valgrind's callgrind counts them on `chasquimq-counts`, of the base and of this tree, which
 * one compiler has built. No load moves them, so that less is a drop than between pairs of runs.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { UsageError } from '../ending.js';
import { COUNTER, counterHere, counterOf } from './builds.js';
import { isEngineAlike } from './git.js';
import type { Outcome } from './judgement.js';

export const instructionParts = ['encode-one', 'encode-many', 'decode', 'complete', 'fail'] as const;
/** As in the program. */
const JOBS_A_ROUND = 256;
const ROUNDS = 10;
/** The compiler lays the same code out anew beside other code, which makes up to 1 %. */
export const MOST_GROWTH = 0.02;

export interface Counted {
  readonly part: string;
  /** Undefined where the base does not know the part. */
  readonly base: number | undefined;
  readonly head: number;
}

/** Nothing, and why in a line, where they cannot be counted, or need not be. */
export async function countBoth(base: string, say: (line: string) => void): Promise<readonly Counted[]> {
  const name = base.slice(0, 9);
  const without = (why: string) => {
    say(`instructions: not counted: ${why}`);
    return [];
  };
  if (isEngineAlike(base)) return without(`the engine is that of ${name}`);
  if (!hasValgrind()) return without('there is no valgrind here');
  const theirs = await counterOf(base, say);
  if (theirs === undefined) return without(`${name} has nothing to count them with`);
  const ours = await counterHere(say);
  return instructionParts.map((part) => {
    const head = aJob(ours, part);
    if (head === undefined) throw new UsageError(`${ours} does not know the part ${part}`);
    return { part, base: aJob(theirs, part), head };
  });
}

export function outcomeOf(counted: readonly Counted[]): Outcome {
  return counted.some(hasGrown) ? 'fails' : 'passes';
}

export function lineOf(each: Counted): string {
  const { part, base, head } = each;
  if (base === undefined) return `${part}, instructions a job: ${head}; the base has no such part`;
  return `${part}, instructions a job: ${base} -> ${head}: ${hasGrown(each) ? 'GROWN' : 'holds'}`;
}

const hasGrown = ({ base, head }: Counted): boolean => base !== undefined && head > base * (1 + MOST_GROWTH);

/** The difference of two runs, of which the second has twice as many rounds: what starting and ending costs is not in it. */
function aJob(folder: string, part: string): number | undefined {
  const [once, twice] = [ROUNDS, 2 * ROUNDS].map((rounds) => collected(folder, part, rounds));
  if (once === undefined || twice === undefined) return undefined;
  return Math.round((twice - once) / (ROUNDS * JOBS_A_ROUND));
}

/** Undefined for a part that the program does not know. */
function collected(folder: string, part: string, rounds: number): number | undefined {
  const args = ['--tool=callgrind', '--callgrind-out-file=/dev/null', `./${COUNTER}`, part, String(rounds)];
  // its words and environment lie on the stack, and how that is aligned by them makes up to 3 %: they are the same of both sides
  const env = { PATH: process.env.PATH };
  const { stderr, status } = spawnSync('valgrind', args, { cwd: folder, env, encoding: 'utf8' });
  if (status === 2) return undefined;
  const [, instructions] = /Collected : (\d+)/.exec(stderr) ?? [];
  if (status !== 0 || instructions === undefined)
    throw new UsageError(`valgrind cannot run ${COUNTER} in ${folder}:\n${stderr}`);
  return Number(instructions);
}

function hasValgrind(): boolean {
  try {
    execFileSync('valgrind', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
