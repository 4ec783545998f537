// A worker of children that doubles their data, and kills itself at run number DIE_AT: QUEUE, OWNER (for its connection's
// name).
import { Worker } from 'chasquimq';

const { QUEUE, REDIS_URL, OWNER, DIE_AT } = process.env;

let runs = 0;

new Worker(
  QUEUE,
  async (job) => {
    if (++runs === Number(DIE_AT)) process.kill(process.pid, 'SIGKILL');
    return 2 * job.data;
  },
  {
    connection: { url: REDIS_URL, connectionName: `${QUEUE}-${OWNER}` },
    concurrency: 50,
    lockDuration: 500,
    stalledInterval: 200,
    drainDelay: 1,
    maxStalledCount: 100,
  },
);
