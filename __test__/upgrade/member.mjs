// One process of a rolling deploy: `member.mjs worker|producer`. MODULE (the build that it loads), CONNECTION, QUEUE, LABEL, ROUNDS.
// Sends {ended: id}, {error: text}, and at its end {added: ids}. A worker closes on any message.
import { setTimeout as sleep } from 'node:timers/promises';

const { MODULE, QUEUE, LABEL, ROUNDS } = process.env;
const connection = JSON.parse(process.env.CONNECTION);
const { FlowProducer, Queue, Worker } = await import(MODULE);

/** Jobs in every way in which a queue stores them. */
async function produce() {
  const [queue, flows] = [new Queue(QUEUE, { connection }), new FlowProducer({ connection })];
  const added = [];
  for (let i = 0; i < Number(ROUNDS); i += 1) {
    const jobs = await queue.addBulk([
      { name: 'plain', data: { i } },
      { name: 'plain', data: { i, ms: 5 } },
      { name: 'fails', data: { i }, opts: { attempts: 3 } },
      { name: 'fails', data: { i, progress: true }, opts: { attempts: 3, backoff: 5 } },
      { name: 'late', data: {}, opts: { delay: 20 } },
      { name: 'ranked', data: { result: 8_000 }, opts: { priority: 1 + (i % 5) } },
    ]);
    const kid = { name: 'plain', queueName: QUEUE, data: {} };
    const { job, children } = await flows.add({
      name: 'parent',
      queueName: QUEUE,
      children: [kid, kid, { ...kid, name: 'fails', opts: { attempts: 2 } }],
    });
    added.push(...jobs.map(({ id }) => id), job.id, ...children.map((child) => child.job.id));
    if (i % 7 > 0) continue;
    const touched = await queue.add('plain', { text: 'd'.repeat(20_000) }, { jobId: `${LABEL}-${i}`, delay: 500 });
    await touched.updateData({ result: 100_000 });
    await touched.log('a row');
    await queue.add('plain', {}, { deduplication: { id: `${LABEL}-${i}` } }).then(({ id }) => added.push(id));
    added.push(touched.id);
  }
  await Promise.all([queue.close(), flows.close()]);
  process.send({ added }, () => process.disconnect());
}

async function handle(job) {
  if (job.name === 'fails' && job.attemptsMade === 0) throw new Error('it failed');
  if (job.data.ms) await sleep(job.data.ms);
  if (job.data.progress) await job.updateProgress(50);
  return 'r'.repeat(job.data.result ?? 0);
}

function work() {
  const worker = new Worker(QUEUE, handle, { connection, concurrency: 20, lockDuration: 2_000, stalledInterval: 500 });
  worker.on('completed', (job) => process.send({ ended: job.id }));
  worker.on('error', (error) => process.send({ error: error.message }));
  process.once('message', async () => {
    await worker.close();
    process.disconnect();
  });
}

await (process.argv[2] === 'worker' ? work() : produce());
