// Workers of a queue with a limit: QUEUE, WORKERS (number in this process), OPTIONS (JSON, of each). Every handler writes
// to Redis when it starts, by the server's clock, how many handlers run then in all processes, and its job.
import { Cluster, Redis } from 'ioredis';
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, WORKERS, OPTIONS } = process.env;

const connection = JSON.parse(CONNECTION);
const redis = connection.nodes ? new Cluster(connection.nodes) : new Redis(connection);
const key = (suffix) => `${QUEUE}:${suffix}`;

async function run(job) {
  const [[, [seconds, micros]], [, running]] = await redis.multi().time().incr(key('running')).exec();
  await redis.rpush(key('starts'), `${seconds * 1000 + Math.floor(micros / 1000)} ${running} ${job.id}`);
  if (job.name === 'again' && job.attemptsStarted === 1) {
    await redis.decr(key('running'));
    throw new Error('once more');
  }
  await new Promise((resolve) => setTimeout(resolve, job.data));
  await redis.decr(key('running'));
}

const options = JSON.parse(OPTIONS);
const workers = Array.from(
  { length: Number(WORKERS) },
  () => new Worker(QUEUE, run, { connection, lockDuration: 500, lockRenewTime: 100, stalledInterval: 200, ...options }),
);
await Promise.all(workers.map((worker) => worker.waitUntilReady()));
console.log('ready');
