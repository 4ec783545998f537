// Upserts all schedulers at once, and works for them, with a clock that is SKEW ms off: LIBRARY, QUEUE, SCHEDULERS, RULES (JSON, beside when they run).
// Half of the schedulers run by a pattern. It ends when it is told to (SIGTERM), and says which slots it ran, and when
// (epoch ms, by the machine's clock): `ran <scheduler> <slot> <time>`.
const { LIBRARY, QUEUE, CONNECTION, SKEW, SCHEDULERS, RULES } = process.env;

const Real = Date;
const now = () => Real.now() + Number(SKEW);
globalThis.Date = class extends Real {
  constructor(...given) {
    super(...(given.length > 0 ? given : [now()]));
  }
  static now = now;
};

const { Queue, Worker } = await import(LIBRARY);
const connection = JSON.parse(CONNECTION);
const queue = new Queue(QUEUE, { connection });
const worker = new Worker(
  QUEUE,
  async ({ repeatJobKey, id }) => console.log(`ran ${repeatJobKey} ${id.split(':').at(-1)} ${Real.now()}`),
  { connection, concurrency: 50 },
);
worker.on('error', ({ message }) => console.log(`error ${message}`));

process.once('SIGTERM', async () => {
  await worker.close();
  await queue.close();
});

const upsert = async (i) => {
  const when = i % 2 ? { pattern: '* * * * * *' } : { every: 1000 };
  const template = { opts: { removeOnComplete: true } };
  try {
    await queue.upsertJobScheduler(`s${i}`, { ...when, ...JSON.parse(RULES) }, template);
  } catch ({ message }) {
    console.log(`error ${message}`);
  }
};
await Promise.all(Array.from({ length: Number(SCHEDULERS) }, (_, i) => upsert(i)));
console.log('upserted');
