import { differencesOf } from '../difference.js';

/** What differs in job schedulers. */
export const schedulers = differencesOf('schedulers', [
  {
    id: 'scheduler-numbers',
    title: 'Job schedulers, numbers',
    bullmq: "Runs without end, or rejects with an error of its Lua script. A template's `priority` may be any number.",
    chasquimq:
      "An `every` that is no whole number of at least 1, an `offset` that is none of at least 0, a `limit` and ranks of `getJobSchedulers` that are no numbers, and dates that are none reject with a `RangeError`; a template's `priority` that is no whole number with the text of `add`.",
    why: 'The message says what is wrong.',
    impact: 'check',
    detect: [{ call: 'upsertJobScheduler' }],
  },
  {
    id: 'scheduler-job-just-made',
    title: 'Job schedulers, jobs just made',
    bullmq:
      'Of a scheduler with `every`, `opts.jobId` of the job that `upsertJobScheduler` gives is `repeat:<id>:undefined`.',
    chasquimq:
      'Of a scheduler with `every`, the job that `upsertJobScheduler` gives has its id in `opts.jobId`, and no fields that are null or undefined in `opts`.',
    why: "It is the job's id.",
    impact: 'none',
    detect: [{ call: 'upsertJobScheduler' }],
  },
  {
    id: 'upsert-of-a-promoted-slot',
    title: "Upserting a pattern whose slot's job was promoted",
    bullmq: 'The job that runs, or has ended, becomes the next one of the scheduler: one job is in two states then.',
    chasquimq: 'While that job runs, the next one is that of the slot behind it; it replaces one that has ended.',
    why: 'A job has one state.',
    impact: 'check',
    detect: [{ call: 'upsertJobScheduler' }],
  },
  {
    id: 'upsert-of-a-due-run',
    title: 'Upserting a pattern whose job is due',
    bullmq: 'The job is replaced by that of the next slot: the run that was due does not take place.',
    chasquimq: 'Upserted as it was, with the same pattern and the like, a scheduler keeps the job that waits.',
    why: 'A restart costs no run.',
    impact: 'none',
    detect: [{ call: 'upsertJobScheduler' }],
  },
  {
    id: 'next-run-not-computed',
    title: "A scheduler's job whose next one cannot be computed",
    bullmq: 'The worker emits the cause as well, before the `error`.',
    chasquimq: "The worker emits `error` once, with BullMQ's text and the `cause`.",
    why: 'One cause, one event.',
    impact: 'none',
    detect: [{ call: 'upsertJobScheduler' }],
  },
  {
    id: 'telemetry-of-schedulers',
    title: 'Telemetry of job schedulers',
    bullmq: 'What a worker makes by itself has spans.',
    chasquimq:
      '`upsertJobScheduler` has a span; what a worker makes by itself has none, and carries the context of the `upsertJobScheduler`.',
    why: 'Next jobs are made many at once.',
    impact: 'none',
    detect: [{ option: 'telemetry' }],
  },
  {
    id: 'scheduler-template-parent',
    title: "A scheduler's template with a `parent`",
    bullmq: 'Stores it, and no parent ever waits for the jobs.',
    chasquimq: 'Rejects with a `NotSupportedError`.',
    why: 'A template that can do nothing is refused, rather than stored.',
    impact: 'breaking',
    detect: [{ option: 'parent', to: 'upsertJobScheduler' }],
  },
]);
