// Uses everything once, closes it and has nothing more to do: QUEUE.
import { Queue, QueueEvents, Worker } from 'chasquimq';

const { QUEUE, CONNECTION } = process.env;
const connection = JSON.parse(CONNECTION);

const queue = new Queue(QUEUE, { connection });
const events = new QueueEvents(QUEUE, { connection });
const worker = new Worker(QUEUE, async (job) => job.data * 2, { connection });
await events.waitUntilReady();
const job = await queue.add('job', 21);
console.log('result', await job.waitUntilFinished(events));
await worker.close();
await events.close();
await queue.close();
console.log('closed');
