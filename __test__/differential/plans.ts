/** What a program says of its jobs: which plan is that of a job, what its handlers throw, which steps are about its queue. */
import type { Action, JobPlan, Program, Step } from './program.js';
import type { Thrown } from './values.js';

export function plansOf(program: Program): JobPlan[] {
  const plansIn = (step: Step) => (step.do === 'add' ? step.jobs : step.do === 'schedule' ? [step.job] : []);
  return program.steps.flatMap((step) => plansIn(step).flatMap(plansBelow));
}

function plansBelow(plan: JobPlan): JobPlan[] {
  const added = (plan.script ?? [])
    .flat()
    .flatMap((action: Action) => (action.do === 'waitForChildren' ? action.jobs : []));
  return [plan, ...[...(plan.children ?? []), ...added].flatMap(plansBelow)];
}

/** The plan of the job of that name: `j1`, one of its copies (`j1#3`), or what a handler of another one added in its n-th run (`j1/j2.n`). */
export function planOf(name: string, program: Program): JobPlan | undefined {
  const key = (name.split('/').at(-1) ?? '').split(/[#.]/)[0];
  return plansOf(program).find((plan) => plan.key === key);
}

/** The queue that the job of that name is in; of what a handler adds, that of the handler's action. */
export function queueOf(name: string, program: Program): number | undefined {
  const key = (name.split('/').at(-1) ?? '').split(/[#.]/)[0];
  const inPlan = (plan: JobPlan, queue: number): number | undefined => {
    if (plan.key === key) return plan.queue ?? queue;
    for (const child of plan.children ?? []) {
      const found = inPlan(child, plan.queue ?? queue);
      if (found !== undefined) return found;
    }
    for (const action of (plan.script ?? []).flat()) {
      if (action.do !== 'waitForChildren') continue;
      for (const child of action.jobs) {
        const found = inPlan(child, action.queue);
        if (found !== undefined) return found;
      }
    }
    return undefined;
  };
  for (const step of program.steps) {
    const plans = step.do === 'add' ? step.jobs : step.do === 'schedule' ? [step.job] : [];
    for (const plan of plans) {
      const found = inPlan(plan, 'queue' in step ? step.queue : 0);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

export const throws = (plan: JobPlan | undefined, what: readonly Thrown[]): boolean =>
  (plan?.script ?? []).flat().some((action) => action.do === 'throw' && what.includes(action.what));

/** Whether a method of this queue is called. */
export const calls = (program: Program, queue: number | undefined, method: string): boolean =>
  program.steps.some((step) => step.do === 'queue' && step.queue === queue && step.method === method);

/** What the backoff strategies of this queue's workers give. */
export const strategiesOf = (program: Program, queue: number | undefined): unknown[] =>
  program.workers.filter((worker) => worker.queue === queue).flatMap(({ strategy = [] }) => strategy);
