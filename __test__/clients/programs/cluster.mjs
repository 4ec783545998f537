// A program whose processes node:cluster starts: the first adds, the others work. Says what the jobs gave, and how many processes
// had a part in it.
import cluster from 'node:cluster';

const { LIBRARY, QUEUE, CONNECTION } = process.env;
const { Queue, QueueEvents, Worker } = await import(LIBRARY);
const connection = JSON.parse(CONNECTION);

async function work() {
  const worker = new Worker(QUEUE, async (job) => [job.data.n * 2, process.pid], { connection });
  // one job each, so that each has its part
  let paused;
  worker.once('active', () => (paused = worker.pause()));
  process.once('message', async () => {
    // BullMQ takes its connection from a pause that is under way, which then rejects
    await paused;
    await worker.close();
    cluster.worker.disconnect();
  });
}

async function lead() {
  const queue = new Queue(QUEUE, { connection });
  const events = new QueueEvents(QUEUE, { connection });
  await events.waitUntilReady();
  const processes = [cluster.fork(), cluster.fork()];
  const jobs = await queue.addBulk([1, 2].map((n) => ({ name: 'job', data: { n } })));
  const results = await Promise.all(jobs.map((job) => job.waitUntilFinished(events)));
  for (const each of processes) each.send('close');
  const codes = await Promise.all(processes.map((each) => new Promise((ended) => each.once('exit', ended))));
  await events.close();
  await queue.close();
  const doubled = results.map(([n]) => n);
  console.log(JSON.stringify({ doubled, processes: new Set(results.map(([, pid]) => pid)).size, codes }));
}

await (cluster.isPrimary ? lead() : work());
