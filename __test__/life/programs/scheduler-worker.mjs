// A worker of schedulers' jobs: QUEUE. Patterns are numbers of milliseconds, by a strategy of its own, which with DIE=true kills the
// process: a job was taken, and what follows it was not made. With DIE_AFTER it kills itself after so many jobs.
import { Worker } from 'chasquimq';

const { QUEUE, CONNECTION, DIE, DIE_AFTER } = process.env;
let runs = 0;

const worker = new Worker(
  QUEUE,
  async (job) => {
    console.log(`ran ${job.id}`);
    if (++runs === Number(DIE_AFTER)) process.kill(process.pid, 'SIGKILL');
  },
  {
    connection: JSON.parse(CONNECTION),
    concurrency: 20,
    lockDuration: 500,
    // a starved thread has time to do it
    lockRenewTime: 100,
    stalledInterval: 200,
    drainDelay: 1,
    maxStalledCount: 100,
    settings: {
      repeatStrategy: (millis, { pattern }) => {
        if (DIE === 'true') process.kill(process.pid, 'SIGKILL');
        return millis + Number(pattern);
      },
    },
  },
);
await worker.waitUntilReady();
console.log('ready');
