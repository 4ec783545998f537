/** Makes a failing program small: leaves out whatever it fails without. */
import type { Action, JobPlan, Program, Step } from './program.js';

/** True if the program still shows what it is about. */
export type StillFails = (program: Program) => Promise<boolean>;

/** The smallest that was found before `deadline` (as `performance.now()` says it). */
export async function shrink(program: Program, stillFails: StillFails, deadline: number): Promise<Program> {
  let best = program;
  for (let progress = true; progress;) {
    progress = false;
    for (let at = 0; ;) {
      // those before `at` were tried on what is all but this program
      const candidate = candidates(best).at(at);
      if (!candidate) break;
      if (performance.now() > deadline) return best;
      if (sizeOf(candidate) < sizeOf(best) && (await stillFails(candidate))) {
        best = candidate;
        progress = true;
      } else at++;
    }
  }
  return best;
}

/** A queue less may leave the text as long as it is, and a process less makes it longer. */
const sizeOf = (program: Program): number => {
  const processes = program.workers.filter(({ kind }) => kind === 'apart').length;
  return JSON.stringify(program).length + program.queues + 10 * processes;
};

/** Programs that are a bit smaller, the much smaller ones first. */
function candidates(program: Program): Program[] {
  const { steps, workers } = program;
  return [
    ...unused(program),
    ...without(steps).map((fewer) => ({ ...program, steps: fewer })),
    ...steps.flatMap((step, i) => smallerSteps(step).map((smaller) => ({ ...program, steps: steps.with(i, smaller) }))),
    ...workers.flatMap((worker, i) =>
      [
        { ...worker, kind: worker.kind === 'apart' ? 'function' : worker.kind },
        { ...worker, opts: undefined },
        { ...worker, strategy: undefined },
        { ...worker, concurrency: Math.ceil(worker.concurrency / 2) },
        { ...worker, strategy: worker.strategy?.slice(0, 1) },
      ].map((smaller) => ({ ...program, workers: workers.with(i, smaller) })),
    ),
  ];
}

/** The list without its halves, quarters, ... and single items. */
function without<T>(list: readonly T[]): T[][] {
  const fewer: T[][] = [];
  for (let size = Math.ceil(list.length / 2); size >= 1; size = size > 1 ? Math.ceil(size / 2) : 0)
    for (let from = 0; from < list.length; from += size)
      fewer.push([...list.slice(0, from), ...list.slice(from + size)]);
  return fewer;
}

function smallerSteps(step: Step): Step[] {
  if (step.do !== 'add') return [];
  const fewer = without(step.jobs).filter(({ length }) => length > 0);
  return [
    ...fewer.map((jobs) => ({ ...step, jobs })),
    ...step.jobs.flatMap((job, i) =>
      smallerJobs(job).map((smaller) => ({ ...step, jobs: step.jobs.with(i, smaller) })),
    ),
  ];
}

function smallerJobs(job: JobPlan): JobPlan[] {
  const { copies, opts = {}, script = [], children = [] } = job;
  const fields = Object.keys(opts);
  return [
    ...(copies === undefined ? [] : [{ ...job, copies: undefined }]),
    ...(copies !== undefined && copies > 1 ? [{ ...job, copies: Math.ceil(copies / 2) }] : []),
    ...without(children).map((fewer) => ({ ...job, children: fewer.length > 0 ? fewer : undefined })),
    ...children.flatMap((child, i) =>
      smallerJobs(child).map((smaller) => ({ ...job, children: children.with(i, smaller) })),
    ),
    ...fields.map((name) => ({ ...job, opts: optsWithout(opts, name) })),
    ...without(script).map((fewer) => ({ ...job, script: fewer.length > 0 ? fewer : undefined })),
    ...script.flatMap((run, i) => smallerRuns(run).map((smaller) => ({ ...job, script: script.with(i, smaller) }))),
  ];
}

function optsWithout(opts: NonNullable<JobPlan['opts']>, name: string): JobPlan['opts'] {
  const { [name]: _, ...rest } = opts;
  return Object.keys(rest).length > 0 ? rest : undefined;
}

function smallerRuns(run: readonly Action[]): (readonly Action[])[] {
  return [
    ...without(run),
    ...run.flatMap((action, i) => {
      if (action.do !== 'waitForChildren') return [];
      const jobs = [
        ...without(action.jobs),
        ...action.jobs.flatMap((job) => smallerJobs(job).map((smaller) => [smaller])),
      ];
      return jobs.map((fewer) => run.with(i, { ...action, jobs: fewer }));
    }),
  ];
}

/** Without workers and queues that no step is about; those that are left have new numbers. */
function unused(program: Program): Program[] {
  const { workers, steps, queues } = program;
  const started = numbersOf('worker', steps);
  const played = numbersOf('queue', [steps, workers.filter((_, i) => started.includes(i))]);
  if (started.length === workers.length && played.length === queues) return [];
  const kept = {
    ...program,
    workers: workers.filter((_, i) => started.includes(i)),
    queues: Math.max(1, played.length),
  };
  return [renumbered(kept, { worker: started, queue: played })];
}

function numbersOf(field: string, part: unknown): number[] {
  const found = new Set<number>();
  JSON.stringify(part, (name, value: unknown) => {
    if (name === field && typeof value === 'number') found.add(value);
    return value;
  });
  return [...found].sort((a, b) => a - b);
}

function renumbered(program: Program, left: Readonly<Record<string, readonly number[]>>): Program {
  const text = JSON.stringify(program, (name, value: unknown) =>
    typeof value === 'number' && left[name]?.includes(value) ? left[name].indexOf(value) : value,
  );
  return JSON.parse(text) as Program;
}
