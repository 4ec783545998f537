/** Whether a program shows a difference that is one: chance, and a machine that was busy, are told apart by running it again. */
import { compare, LONG_NEGLECTS } from './compare.js';
import type { Difference } from './compare.js';
import type { Program } from './program.js';
import type { Pair } from './side.js';

const RUNS = 3;

/** The differences that are there most times, or are beyond chance; none if there is none at first. */
export async function judge(pair: Pair, program: Program): Promise<Difference[]> {
  const first = await look(pair, program);
  if (first.length === 0) return [];
  const runs = [first];
  while (runs.length < RUNS) runs.push(await look(pair, program));
  return first.filter(({ kind, path }) => {
    if (path === LONG_NEGLECTS) return true;
    const often = runs.filter((run) => run.some((other) => other.kind === kind)).length * 2 > RUNS;
    // where BullMQ itself does now this, now that, there is nothing to agree with
    const theirs = new Set(
      runs.flatMap((run) => run.filter((other) => other.path === path).map(({ bullmq }) => bullmq)),
    );
    return often && theirs.size <= 1;
  });
}

/** One run of each. */
export async function look(pair: Pair, program: Program): Promise<Difference[]> {
  const { bullmq, chasquimq } = await pair.run(program);
  return compare(program, bullmq, chasquimq);
}
