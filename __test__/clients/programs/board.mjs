// bull-board (board-app.mjs): reads every route of its API, then does everything that its buttons do. Says `answer` with the
// request, the status and the body of each, without what differs from run to run.
import { base, close, hasOurFlows, queues } from './board-app.mjs';

const { QUEUE } = process.env;

const JOBS = ['good', 'bad', 'ended', 'open', 'waits', 'late', 'urgent', 'shared', 'nobody'];
const STATES = ['latest', 'active', 'waiting', 'waiting-children', 'prioritized', 'completed', 'failed', 'delayed'];
const OF_QUEUE = ['metrics', 'default-job-options', 'workers', 'rate-limit', 'job-data-schema'];

const q = `/api/queues/${QUEUE}`;

const reads = [
  ['GET', '/'],
  ['GET', '/api/redis/stats'],
  ...STATES.map((state) => ['GET', `/api/queues?activeQueue=${QUEUE}&status=${state}&page=1&jobsPerPage=20`]),
  ['GET', '/api/queues?activeQueue=no-such-queue'],
  ['GET', '/api/job-schedulers'],
  ['GET', `/api/job-schedulers?queueName=${QUEUE}`],
  ...OF_QUEUE.map((what) => ['GET', `${q}/${what}`]),
  ...JOBS.flatMap((id) => ['', '/logs', '/flow'].map((what) => ['GET', `${q}/${id}${what}`])),
  ['GET', `${q}-child/open-x/flow`],
  ['GET', `${q}-child/open-x/flow?root=node`],
  ['GET', `${q}/open/flow?depth=1&maxChildren=1`],
];

const acts = [
  ['PATCH', `${q}/waits/update-data`, { jobData: { changed: true } }],
  ['PATCH', `${q}/late/delay`, { runAt: Date.now() + 7_200_000 }],
  ['PATCH', `${q}/urgent/priority`, { priority: 9 }],
  ['PATCH', `${q}/bad/delay`, { runAt: Date.now() + 7_200_000 }],
  ['PATCH', `${q}/good/priority`, { priority: 1 }],
  ['PUT', `${q}/late/promote`],
  ['PUT', `${q}/good/promote`],
  ['PUT', `${q}/bad/retry/failed`],
  ['PUT', `${q}/waits/retry/failed`],
  ['PUT', `${q}/good/retry/completed`],
  ['PUT', `${q}/good/clean`],
  ['PUT', `${q}/open/remove-unprocessed-children`],
  ['PUT', `${q}/waits/remove-unprocessed-children`],
  ['POST', `${q}/add`, { name: 'mine', data: { x: 1 }, options: { jobId: 'mine', delay: 60_000 } }],
  ['PUT', `${q}/promote`],
  ['PUT', `${q}/retry/failed`],
  ['PUT', `${q}/retry/completed`],
  ['PATCH', `${q}/job-schedulers/hourly`, { every: 7_200_000 }],
  ['PATCH', `${q}/job-schedulers/hourly`, { pattern: 'no such pattern' }],
  ['PATCH', `${q}/job-schedulers/none`, { every: 7_200_000 }],
  ['PUT', `${q}/job-schedulers/hourly/run`],
  ['PUT', `${q}/job-schedulers/hourly/remove`],
  ['PUT', `${q}/pause`],
  ['PUT', `${q}/resume`],
  ['PUT', '/api/queues/pause'],
  ['PUT', '/api/queues/resume'],
  ['PUT', `${q}/concurrency`, { concurrency: 3 }],
  ['PUT', `${q}/concurrency`, { concurrency: 0 }],
  ['PUT', `${q}/rate-limit`, { max: 5, duration: 100 }],
  ['PUT', `${q}/rate-limit`, { max: null }],
  ['PUT', `${q}/rate-limit/release`],
];

const removals = [
  ...STATES.slice(1).map((state) => ['PUT', `${q}-child/clean/${state}`]),
  ['PUT', `${q}/empty`],
  ['PUT', `${q}/obliterate`, { force: false }],
  ['PUT', `${q}-child/obliterate`, { force: true }],
];

/** Keys whose values differ from run to run. */
const VOLATILE = new Set(
  (
    'timestamp processedOn finishedOn delay next startDate nextRunJobId lastRun lastRunJobId prevMillis offset jobId ' +
    'every prevTS count uptime used peak total fragmentationRatio connected blocked port'
  ).split(' '),
);

/** A body with its keys in order, and no value that differs from run to run. */
function plain(value, key = '') {
  if (VOLATILE.has(key) && typeof value !== 'object') return `a ${typeof value}`;
  if (typeof value === 'string') return unnamed(value);
  if (key === 'workers') return value.map((worker) => Object.keys(worker).sort());
  if (key === 'children') return value.map((child) => plain(child)).sort((a, b) => (a.id < b.id ? -1 : 1)); // of a set
  if (Array.isArray(value)) return key === 'stacktrace' ? value.map(() => 'a trace') : value.map((item) => plain(item));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, inner]) => [unnamed(name), plain(inner, name)]);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function unnamed(text) {
  const names = text.replaceAll(QUEUE, 'QUEUE').replaceAll(/repeat:hourly:\d+/g, 'repeat:hourly:TIME');
  return names.replaceAll(/[\da-f]{8}-[\da-f-]{27}/g, 'UUID');
}

async function ask([method, path, body]) {
  const headers = body && { 'content-type': 'application/json' };
  const response = await globalThis.fetch(base + path, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const type = response.headers.get('content-type') ?? '';
  const told = type.includes('json') ? plain(JSON.parse(text)) : type;
  console.log('answer', JSON.stringify({ request: `${method} ${unnamed(path)}`, status: response.status, body: told }));
}

async function act(request) {
  await ask(request);
  console.log('counts', JSON.stringify(await Promise.all(queues.map((each) => each.getJobCounts()))));
}

// in a group, which BullMQ does not have
await queues[0].add('shared', {}, { jobId: 'shared', group: { id: 'tenant' } });
for (const request of reads) await ask(request);
for (const request of acts) await act(request);
// the board cleans what is older than some seconds: all of it is now, however fast this went
const now = Date.now;
Date.now = () => now() + 60_000;
for (const request of removals) await act(request);
console.log('flows', ...(await hasOurFlows()));
await close();
