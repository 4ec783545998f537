import { differencesOf, type Detect } from '../difference.js';

/** What code with sandboxed processors looks like. */
const SANDBOXED: readonly Detect[] = [
  { option: 'useWorkerThreads' },
  { option: 'workerForkOptions' },
  { option: 'workerThreadsOptions' },
];

/** What differs while workers take and run jobs. */
export const workers = differencesOf('workers', [
  {
    id: 'completed-after-next-active',
    title: 'Events of a worker',
    bullmq: '`completed(A)` comes before `active(B)` on the same slot.',
    chasquimq:
      'Once a worker has seen 50 jobs with short handlers, `completed(A)` may come after `active(B)` on the same slot. Below that pace, `completed(A)` comes first, as there.',
    why: 'Completions are recorded in batches; a slot does not wait for the answer.',
    impact: 'check',
    detect: [{ event: 'active' }],
  },
  {
    id: 'jobs-taken-in-advance',
    title: 'Jobs taken in advance',
    bullmq: 'A job is active when its handler is about to run.',
    chasquimq:
      'A worker with short handlers takes some in advance while no other worker waits; those that it gives back have emitted `waiting` and `active` once more, though their handlers never ran. So have those that a blocked event loop did not start within 20 ms while a worker of another process was idle. A job of a higher priority, or with `lifo`, that comes meanwhile starts behind them. They count as active: what is done meanwhile by `updateData`, `drain`, `remove` or a `keepLastIfActive` add meets jobs that a worker has.',
    why: 'Completions are recorded in batches; a slot does not wait for the answer. No job waits behind a blocked event loop while another worker is idle.',
    impact: 'check',
    detect: [{ event: 'active' }, { event: 'waiting' }],
  },
  {
    id: 'times-of-a-batch',
    title: '`finishedOn`, `processedOn`',
    bullmq: 'Are times of each job by itself.',
    chasquimq:
      'Those of one batch are equal: the time of the call that recorded or took them. A job taken in advance starts some milliseconds after its `processedOn`.',
    why: 'There is one script call for a batch.',
    impact: 'none',
  },
  {
    id: 'lease-of-the-worker',
    title: 'Locks',
    bullmq: 'Each job has a lock of its own, a key in Redis.',
    chasquimq:
      'A lease belongs to the worker, not to the job; only a job taken by `getNextJob` has one of its own. In a processor `job.extendLock(token, ms)` sets the life of the whole lease until its next renewal; a token stands for one run of its job. A lease that ran out, with nobody there to recover its jobs, still ends them.',
    why: 'There is one renewal, whatever the concurrency.',
    impact: 'check',
    detect: [{ call: 'extendLock' }, { call: 'extendJobLocks' }],
  },
  {
    id: 'lock-renewal',
    title: 'Lock renewal',
    bullmq: 'On the event loop; `locksRenewed` is emitted, with a telemetry span.',
    chasquimq:
      'On a thread of the engine. `locksRenewed` is not emitted, and there is no telemetry span; `lockRenewalFailed` is emitted.',
    why: 'A blocked event loop must not lose jobs.',
    impact: 'check',
    detect: [{ event: 'locksRenewed' }],
  },
  {
    id: 'get-next-job-waits',
    title: '`getNextJob` that waits',
    bullmq: 'Gives `undefined` early, and may keep `close()` waiting, or reject.',
    chasquimq:
      'Goes on waiting for `drainDelay` when another took the job it was woken for, or nothing is due yet, and gives `undefined` at once when its worker closes.',
    why: 'It waits as long as its options say.',
    impact: 'none',
    detect: [{ call: 'getNextJob' }],
  },
  {
    id: 'sandboxed-child-that-exits',
    title: 'Sandboxed processors',
    bullmq:
      'A job stays active when its child exits while it loads its file, or a call of it could not be carried out.',
    chasquimq:
      'A child that exits while it loads its file fails the job, as does a call (`moveToDelayed`, ...) that the worker could not carry out. `close(true)` kills the children at once.',
    why: 'A job must not hang.',
    impact: 'none',
    detect: SANDBOXED,
  },
  {
    id: 'sandboxed-late-calls',
    title: 'Calls of a sandboxed job after its end',
    bullmq: 'Are made on the job that runs in that child by then, or on none.',
    chasquimq:
      'Are made on the job they were called on. An error of such a call is reported only where the call has an answer.',
    why: 'A job must not change another.',
    impact: 'none',
    detect: SANDBOXED,
  },
  {
    id: 'sandboxed-error-members',
    title: 'What an error of a sandboxed processor holds',
    bullmq:
      'Its `cause` comes without message and stack. An error that holds a BigInt is replaced by `Do not know how to serialize a BigInt`.',
    chasquimq: 'Its `cause` comes with message and stack, and a BigInt as a text.',
    why: 'An error must say what went wrong.',
    impact: 'none',
    detect: SANDBOXED,
  },
  {
    id: 'sandboxed-result-not-cloned',
    title: 'A sandboxed processor in a thread that gives a function or a symbol',
    bullmq: 'The job fails with an error without a message.',
    chasquimq: 'The message says that the value could not be cloned.',
    why: 'An error must say what went wrong.',
    impact: 'none',
    detect: SANDBOXED,
  },
  {
    id: 'sandboxed-relative-path',
    title: 'A relative path to a sandboxed processor, or one without `.js`',
    bullmq:
      "Is looked for from the process's working directory, and then loaded from BullMQ's own folder, where it is not: each job fails. So it does where a path leaves `.js` out.",
    chasquimq: "Leads from the process's working directory, and `.js` may be left out.",
    why: 'A file that was found is the one that is loaded.',
    impact: 'none',
    detect: SANDBOXED,
  },
  {
    id: 'sandboxed-no-default',
    title: 'A sandboxed processor that is an ES module without a default export',
    bullmq: "Jobs fail with `Cannot read properties of undefined (reading 'default')`.",
    chasquimq: 'Jobs fail with `No function is exported in processor file`, as of any other file.',
    why: 'An error must say what went wrong.',
    impact: 'none',
    detect: SANDBOXED,
  },
  {
    id: 'sandboxed-in-a-bundle',
    title: 'Sandboxed processors in a bundle',
    bullmq: 'Throws `ENOENT`, or takes a bundle called `main.js` for its own file.',
    chasquimq: 'The constructor refuses them and names the setting.',
    why: 'A job must not run the program again.',
    impact: 'check',
    test: '__test__/parity/differences.bundles.test.ts',
    detect: SANDBOXED,
  },
  {
    id: 'stalled-in-one-scan',
    title: 'Stalled check',
    bullmq: 'Needs a second scan.',
    chasquimq: 'One scan suffices: a job is recovered after `lockDuration` and at most one `stalledInterval`.',
    why: 'The lease alone tells whether a worker lives.',
    impact: 'none',
  },
  {
    id: 'stalled-oldest-first',
    title: '`stalledCounter`',
    bullmq: 'Counts the jobs that ran when their worker died.',
    chasquimq:
      'Counts as many as the worker has slots, the oldest first. Jobs that ended in the very tick in which it died stand before the one that ran, and count for it. That one counts the next time in any case: a job that kills its workers may kill one more.',
    why: 'A start costs no call, so Redis does not know of it.',
    impact: 'none',
  },
  {
    id: 'drained-of-a-closing-worker',
    title: 'A worker that closes or is paused',
    bullmq: 'Emits `drained` when the last job ends, whatever waits, and no `error` for an end that is refused.',
    chasquimq: 'Emits `drained` only when it looked for jobs and found none, and `error` as ever.',
    why: 'An event tells what happened.',
    impact: 'none',
    detect: [{ event: 'drained' }],
  },
  {
    id: 'telemetry-behind-a-job',
    title: 'Telemetry of what comes after a job',
    bullmq: '`active` of the next job and `drained` lie within the span of the job that ended before.',
    chasquimq: "`active` of the next job and `drained` are emitted outside of any job's span.",
    why: 'It has nothing to do with them.',
    impact: 'none',
    detect: [{ option: 'telemetry' }],
  },
  {
    id: 'telemetry-of-scans',
    title: 'Telemetry of scans',
    bullmq: 'Each scan for stalled jobs is a span.',
    chasquimq: 'A scan that found no stalled job has no `moveStalledJobsToWait` span.',
    why: "The engine's own thread scans.",
    impact: 'none',
    detect: [{ option: 'telemetry' }],
  },
  {
    id: 'worker-option-numbers',
    title: 'Numbers in worker options',
    bullmq: 'Takes some of what is no number, and with such a `lockDuration` its worker never gets a job.',
    chasquimq:
      'What is no number is refused like any other value out of range; so are `lockDuration` (`null` too), `lockRenewTime` and `runRetryDelay` of 0 or less.',
    why: '`NaN` and infinities would silently become something else.',
    impact: 'check',
    detect: [{ option: 'lockDuration' }, { option: 'lockRenewTime' }, { option: 'runRetryDelay' }],
  },
  {
    id: 'worker-options-read-once',
    title: '`worker.opts` changed later',
    bullmq:
      '`removeOnComplete`, `removeOnFail`, `maxStalledCount`, `maxStartedAttempts` and `name` hold from the next use.',
    chasquimq:
      "The constructor's hold, but for `concurrency`, `limiter` and `settings.backoffStrategy`. A job starts no more often than a later `maxStartedAttempts` says, and fails once more for it.",
    why: 'The engine reads the options once.',
    impact: 'none',
  },
  {
    id: 'limiter-replaced',
    title: '`worker.opts.limiter` replaced while it runs',
    bullmq: 'The next fetch goes by the new limit.',
    chasquimq: 'A fetch that was sent before goes by the old limit once.',
    why: 'The engine fetches on a thread of its own.',
    impact: 'none',
    detect: [{ option: 'limiter' }],
  },
  {
    id: 'close-by-force',
    title: '`close(true)`',
    bullmq: '`isRunning()` is true until the processors have ended.',
    chasquimq: 'The worker runs no more, and `run()` has settled, although its processors may go on.',
    why: 'It is closed.',
    impact: 'none',
  },
  {
    id: 'close-with-options',
    title: '`close` with an object',
    bullmq: 'Is `close(true)`, as with any other truthy value.',
    chasquimq:
      'An object is options: `{ force, timeout }`. After `timeout` ms jobs that run go back to the waiting list, and the try is not counted.',
    why: 'A container has only some seconds to end.',
    impact: 'none',
    detect: [{ option: 'timeout', to: 'close' }],
  },
  {
    id: 'time-limits',
    title: '`timeout` of a job, `ttl` of a worker',
    bullmq: 'They do nothing: Bull had a `timeout`, and BullMQ Pro has a `ttl`.',
    chasquimq: 'A run that takes more milliseconds fails; what is no number above 0 is refused.',
    why: 'A handler that never ends would hold its slot for ever.',
    impact: 'check',
    detect: [{ option: 'timeout', to: 'add' }],
  },
  {
    id: 'methods-of-the-loop',
    title: 'Methods of workers and jobs that are replaced',
    bullmq:
      "A worker's loop calls its `processJob`, `createJob`, `handleCompleted` and `handleFailed`, and `moveToCompleted` and `moveToFailed` of its jobs, whoever overrides or patches them.",
    chasquimq:
      'A loop calls `callProcessJob`, `createJob` if that was replaced, and `processJob` if that was replaced when the worker was made: it settles when the processor has, before the end is stored. `moveToCompleted` and `moveToFailed` are only called for jobs taken by `getNextJob`; `handleCompleted` and `handleFailed` never.',
    why: 'The ends of many jobs are stored by one call.',
    impact: 'check',
    detect: [{ call: 'handleCompleted' }, { call: 'handleFailed' }],
  },
]);
