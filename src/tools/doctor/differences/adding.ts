import { differencesOf } from '../difference.js';

/** What differs when jobs and flows are added. */
export const adding = differencesOf('adding', [
  {
    id: 'add-travels-in-batches',
    title: '`add`',
    bullmq: 'Each call is a round trip of its own.',
    chasquimq: 'Calls of one tick travel as one batch. If the server refuses it (out of memory), all of them reject.',
    why: 'Fewer round trips.',
    impact: 'none',
    test: '__test__/parity/differences.steps.test.ts',
  },
  {
    id: 'add-bulk-is-atomic',
    title: '`addBulk`',
    bullmq: "Other producers' ids may lie between those of one call.",
    chasquimq: 'Atomic, with consecutive ids; beyond 4,096 jobs or 4 Mi characters it goes as several such steps.',
    why: 'One script call.',
    impact: 'none',
  },
  {
    id: 'pending-adds',
    title: 'Adds without an answer',
    bullmq: 'As many as the memory of the process holds.',
    chasquimq:
      'Past 1,000,000 jobs that the server has not answered for, further adds reject; the option `maxPendingAdds` of a Queue says how many.',
    why: 'It bounds the memory of a program that adds faster than the server takes jobs, or while the server is away.',
    impact: 'check',
  },
  {
    id: 'add-bulk-missing-parent',
    title: '`addBulk` with a `parent`',
    bullmq:
      'A job whose parent is missing, or that has another one, is given back with an id that is the number of the error.',
    chasquimq:
      "Rejects with `code` -5 or -7 when a job's parent is missing, or the job exists and has another one; the others are added.",
    why: 'The caller learns that a job was not added.',
    impact: 'check',
    detect: [{ option: 'parent' }],
  },
  {
    id: 'flow-child-ids',
    title: 'ids of children that are given none',
    bullmq: 'UUIDs, all of them random.',
    chasquimq: 'UUIDs that begin alike for all of a call in one queue, and count up.',
    why: 'Children that are told apart by their numbers lie 64 in one entry.',
    impact: 'none',
  },
  {
    id: 'telemetry-of-flow-nodes',
    title: 'Telemetry of the jobs of a flow',
    bullmq:
      'Jobs that are given no options carry no context, so the spans of their workers begin a trace of their own.',
    chasquimq: 'All carry the context of their own span, unless they bring one or `omitContext` is set.',
    why: 'A trace must not end where a job has no options.',
    impact: 'none',
    detect: [{ option: 'telemetry' }],
  },
  {
    id: 'job-option-numbers',
    title: 'Numbers in job options',
    bullmq: "Rejects some of what is no number with the server's message, and stores the rest.",
    chasquimq: 'What is no number rejects with a `RangeError` that names the option.',
    why: '`NaN` and infinities have no JSON form, and would silently become the default.',
    impact: 'check',
  },
  {
    id: 'job-option-number-texts',
    title: 'Texts that are numbers in job options',
    bullmq: 'Are kept as texts. A job with a text as `delay` starts at once.',
    chasquimq: '`delay`, `timestamp` and `attempts` become numbers, and the job waits for its `delay`.',
    why: 'The caller asked for a delay.',
    impact: 'check',
  },
  {
    id: 'negative-delay',
    title: 'Numbers below 0 as `delay` or `timestamp`',
    bullmq: 'Are shown in the job as they were given.',
    chasquimq: 'Are 0 in the job that getters and workers give.',
    why: 'They mean 0.',
    impact: 'none',
  },
  {
    id: 'job-names',
    title: 'Names of jobs',
    bullmq:
      'What is neither a text nor a number rejects with an error of its Lua script, and the job that `add` gives for a number has the number as its name.',
    chasquimq:
      'What is neither a text nor a number rejects with a `TypeError`, as does a `jobId` of `null`; a number is the text of it.',
    why: 'The message says what is wrong.',
    impact: 'none',
  },
  {
    id: 'half-surrogates',
    title: 'Half of a pair of surrogates',
    bullmq: 'Becomes three characters in a name or an id; neither the job nor its deduplication id is found again.',
    chasquimq: 'In a name or an id it becomes one U+FFFD, and the job is found by the same text.',
    why: 'It has no form in UTF-8.',
    impact: 'none',
  },
  {
    id: 'retention-texts',
    title: '`removeOnComplete` and `removeOnFail` that are texts',
    bullmq: "`'200'` keeps none of these jobs.",
    chasquimq: "`'200'` keeps 200.",
    why: "As `attempts: '3'`.",
    impact: 'check',
    detect: [{ option: 'removeOnComplete' }, { option: 'removeOnFail' }],
  },
  {
    id: 'deduplication-options',
    title: 'Deduplication options',
    bullmq: 'Values it cannot use reject with an error of its Lua script.',
    chasquimq:
      'An `id` that is neither a text nor a number, and a `ttl` that is no whole number, reject with a message that names it.',
    why: 'The message says what is wrong.',
    impact: 'none',
    detect: [{ option: 'deduplication' }],
  },
  {
    id: 'keep-last-if-active',
    title: '`keepLastIfActive`',
    bullmq:
      'If by the time the kept job is added a job of its `jobId` exists, it is added all the same: one job is in two states, and runs twice.',
    chasquimq:
      'What is kept belongs to the job that was active, not to the deduplication id. If by the time it is added a job of its `jobId` exists, it is discarded (`duplicated`).',
    why: 'A job runs once.',
    impact: 'none',
    detect: [{ option: 'keepLastIfActive' }],
  },
  {
    id: 'opts-parent',
    title: '`job.opts.parent`',
    bullmq: 'The parent with which the job was first added, also after `removeChildDependency`.',
    chasquimq: 'The parent that the job has now.',
    why: 'Children need not store it each.',
    impact: 'none',
  },
  {
    id: 'options-not-given',
    title: '`job.opts` of jobs just added',
    bullmq:
      'Of a job that `add`, `addBulk` or a flow gives, `jobId`, `telemetry` and `parent` are own properties, undefined where they were not given.',
    chasquimq: 'What was not given is no property, but for `backoff`: as of a job that a getter gives, in both.',
    why: 'Jobs with equal options share them.',
    impact: 'none',
  },
  {
    id: 'lazy-job-fields',
    title: '`job.data`, `opts`, `returnvalue`, `stacktrace`, `queueQualifiedName`',
    bullmq: 'Plain properties.',
    chasquimq:
      "Accessors, decoded at first use: own ones of jobs that getters give. Of jobs that were added, or that a worker took, they are the class's: `toJSON()`, `JSON.stringify` and `console.log` show them; a spread (`{ ...job }`), `Object.assign` and `Object.keys` do not.",
    why: 'Data nobody reads is never decoded.',
    impact: 'check',
  },
  {
    id: 'publish-event-objects',
    title: '`publishEvent`',
    bullmq: 'A field that is an array may become other fields.',
    chasquimq: 'A field that is an object rejects.',
    why: 'The fields of events are texts.',
    impact: 'none',
    detect: [{ call: 'publishEvent' }],
  },
]);
