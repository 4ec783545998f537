// Started by `fork`: adds jobs to QUEUE, and runs what comes to it, as its parent does. Data are numbers, from FIRST on.
// Says `busy`; told `stop`, what it added (numbers and ids, in the order of the calls); told `report`, which numbers it ran; ends on `close`.
import { Queue, Worker } from 'chasquimq';

const { QUEUE, CONNECTION, FIRST } = process.env;
const connection = JSON.parse(CONNECTION);

const queue = new Queue(QUEUE, { connection });
const ran = [];
const worker = new Worker(QUEUE, async ({ data }) => void ran.push(data), { connection, concurrency: 5 });
const adds = [];
let [number, isOver] = [Number(FIRST), false];

const orders = {
  stop: () => (isOver = true),
  report: () => process.send({ ran }),
  async close() {
    await worker.close();
    await queue.close();
    process.disconnect();
  },
};
process.on('message', (order) => orders[order]());

while (!isOver) {
  const sent = Array.from({ length: 10 }, () => number++).map((data) => queue.add('job', data));
  const added = await Promise.all(sent);
  adds.push(...added.map(({ id, data }) => [data, id]));
  const job = await queue.getJob(added[0].id);
  if (job.id !== added[0].id || job.data !== added[0].data) throw new Error(`read ${job.id} for ${added[0].id}`);
  if (adds.length === 100) process.send('busy');
}
process.send({ adds });
