/**
 * A queue is drained in which a scheduler's job waits behind another job: here that job stays in the waiting list. BullMQ may leave the id of the other one in its
 * place, whose data it removed: it runs a job without a name, and the scheduler makes no more.
 */
import { calls, queueOf } from './plans.js';
import type { Program, Step } from './program.js';
import type { About, Context } from './wanted.js';

/** How a job without a name, and what it gives, are told. */
const NAMELESS = 'undefined';
const GIVES = 'returnvalue="done undefined"';

export function tellsOfGhost({ path, job }: About, { program, bullmq, chasquimq }: Context): boolean {
  if (!(NAMELESS in bullmq.jobs) || NAMELESS in chasquimq.jobs) return false;
  const queues = haunted(program);
  if (job === NAMELESS) return queues.length > 0;
  if (job !== undefined) {
    const isGhost = bullmq.jobs[job]?.events.some((event) => event.includes(GIVES)) ?? false;
    return queues.includes(queueOf(job, program)) && (isGhost || isScheduled(job, program));
  }
  const [, at, queue] = /^steps\.(\d+) queue |^queues\.(\d+)\./.exec(path) ?? [];
  if (queue !== undefined) return queues.includes(Number(queue));
  const step = program.steps[Number(at)];
  return step?.do === 'queue' && queues.includes(step.queue) && /^(getJob|getWaiting|clean|drain)/.test(step.method);
}

const isScheduled = (name: string, { steps }: Program): boolean =>
  steps.some((step) => step.do === 'schedule' && step.job.key === name);

/** Queues with schedulers that are drained. */
function haunted(program: Program): (number | undefined)[] {
  const scheduled = program.steps.flatMap((step: Step) => (step.do === 'schedule' ? [step.queue] : []));
  return scheduled.filter((queue) => calls(program, queue, 'drain'));
}
