// What the jobs of a chaos run are to do: drawn by chance, from a seed, and told to their handlers (handler.mjs) in their data.

/** `n` characters that tell whose they are. */
export function fill(mark, n) {
  return mark.repeat(Math.ceil(n / mark.length)).slice(0, n);
}

/** Numbers that look random and are the same for each seed: gives one of 0 .. n - 1 (mulberry32). */
export function randomOf(seed) {
  let state = seed;
  return (n) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}

/** A server that refuses what a handler asks of it makes the try fail. */
const PATIENT = { attempts: 8, backoff: { type: 'exponential', delay: 20 } };

/** What a kind has that others have not: of its data, and of its options. */
const kinds = {
  plain: () => ({}),
  // waits for nothing but a worker
  mixed: () => ({}),
  child: () => ({}),
  parent: () => ({}),
  // a parent that fails with a child, and never runs; one that starts when a child has failed, and one that does not mind
  doomed: () => ({}),
  hasty: () => ({}),
  lenient: () => ({}),
  delayed: (random) => ({ opts: { delay: 20 + random(2_000) } }),
  prioritized: (random) => ({ opts: { priority: 1 + random(5) } }),
  'own-id': (_, key) => ({ opts: { jobId: key } }),
  retried: (random) => ({ data: { fails: 1 + random(3) }, opts: PATIENT }),
  failing: () => ({ data: { fails: 9 }, opts: { attempts: 2, backoff: 50 } }),
  hopeless: (random) => ({ data: { fails: 1, hopeless: random(2) }, opts: { attempts: 5, backoff: 20 } }),
  talking: (random) => ({ data: { says: 1 + random(5) }, opts: PATIENT }),
  // moves itself at its first start
  moved: (random) => ({ data: { byStarts: true, moves: [someMove(random)] }, opts: PATIENT }),
  // keeps in its data how far it is
  steps: (random) => ({ data: { moves: many(1 + random(3), () => someMove(random)) }, opts: PATIENT }),
  // adds children at run time, and waits for them
  family: (random, key) => ({
    data: {
      moves: [
        { to: 'add', children: many(1 + random(4), (i) => make('child', `${key}-${i}`, random)).map(withOwnId) },
        { to: 'children', lateMs: late(random) },
      ],
    },
    opts: PATIENT,
  }),
  // of a group, of which only some run at once
  ...Object.fromEntries([0, 1, 2].map((i) => [`tenant-${i}`, tenant(`tenant-${i}`)])),
  // use keys, of which only so much may be used in a window (meters.ts)
  'meter-0': (random) => metered(random, { 'meter-0': 1 }),
  'meter-1': (random) => metered(random, { 'meter-0': 1, 'meter-1': 2 }),
  // comes too late, and never runs; or may come in time
  expired: (random) => ({ opts: { ...somewhere(random), expireAfter: new Date(Date.now() - 1) } }),
  brief: (random) => ({ opts: { ...somewhere(random), expireAfter: 1 + random(500) } }),
  // its producer cancels it
  cancelled: (random) => ({ opts: somewhere(random) }),
  // meets a limit, which keeps every worker from every job for so long
  limited: (random) => ({ data: { byStarts: true, moves: [{ to: 'limit', ms: 10 + random(60) }] }, opts: PATIENT }),
};

/** What a job waits for. */
function somewhere(random) {
  const places = [
    {},
    { delay: random(1_000) },
    { priority: 1 + random(5) },
    { group: { id: 'tenant-0' } },
    { lifo: true },
  ];
  return places[random(places.length)];
}

/** Some are tried again. */
function tenant(id) {
  return (random) => ({
    data: { fails: random(5) === 0 ? 1 : 0 },
    opts: { ...PATIENT, group: { id, weight: 1 + random(3) } },
  });
}

const WINDOWS = { 'meter-0': { max: 4, duration: 500 }, 'meter-1': { max: 4, duration: 700 } };

/** Some move themselves, or are tried again. */
function metered(random, uses) {
  const limits = Object.entries(uses).map(([key, cost]) => ({ key, ...WINDOWS[key], cost }));
  const does = [{}, { fails: 1 }, { byStarts: true, moves: [someMove(random)] }][random(3)];
  return { data: does, opts: { ...PATIENT, ...somewhere(random), limits } };
}

/** A job of one kind. */
export function make(kind, key, random) {
  const { data = {}, opts = {} } = kinds[kind](random, key);
  const job = {
    name: kind,
    data: { key, ...(kind === 'mixed' ? mixed(random) : common(random, key)), ...data },
    opts: { ...opts },
  };
  // once a job is gone its id is free, and a successor that sends it again adds another job
  if (random(3) === 0 && !opts.jobId) job.opts.removeOnComplete = true;
  // a job that a successor sends again goes through its environment
  if (opts.jobId) delete job.data.filler;
  return job;
}

/** What jobs of every kind do: take time, mostly little; some have great data or give great results. */
function common(random, key) {
  const [time, size, data] = [random(1_000), random(1_000), {}];
  if (time >= 600) data.ms = 1 + random(15);
  if (time >= 840) data.ms = 20 + random(60);
  if (time >= 950) data.ms = 200 + random(400);
  // longer than a lease is left unrenewed
  if (time >= 993) data.ms = 1_000 + random(3_000);
  // keeps the event loop of its worker
  if (random(300) === 0) data.blocks = 100 + random(900);
  if (size < 30) data.result = 10_000 + random(60_000);
  if (size < 10) data.result = 100_000;
  if (size < 3) data.result = 100_000 + random(900_000);
  if (size >= 980) data.filler = fill(key, 10_000 + random(size >= 996 ? 290_000 : 30_000));
  return data;
}

/** So short, mostly, that workers take many at a time; and then one that keeps them. */
function mixed(random) {
  const dice = random(400);
  if (dice === 0) return { blocks: 100 + random(900) };
  if (dice < 5) return { result: 100_000 };
  if (dice < 20) return { ms: 20 + random(30) };
  return {};
}

function someMove(random) {
  const dice = random(10);
  const how = { lateMs: late(random), isCareless: random(8) === 0 };
  return dice < 5 ? { to: 'wait', ...how } : { to: 'delayed', ms: dice < 8 ? 0 : random(300), ...how };
}

/** Mostly long enough for the job to be taken again before its handler has ended. */
function late(random) {
  return random(3) === 0 ? 0 : 1 + random(40);
}

function withOwnId(job) {
  const opts = { ...job.opts, jobId: job.data.key };
  delete opts.removeOnComplete;
  return { ...job, opts };
}

function many(n, one) {
  return Array.from({ length: n }, (_, i) => one(i));
}
