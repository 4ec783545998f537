// A worker of children that doubles their data, and kills itself at run number DIE_AT: QUEUE, PREFIX, OWNER (for its
// connection's name).
import { Worker } from 'chasquimq';

const { QUEUE, PREFIX, CONNECTION, OWNER, DIE_AT } = process.env;

let runs = 0;

new Worker(
  QUEUE,
  async (job) => {
    if (++runs === Number(DIE_AT)) process.kill(process.pid, 'SIGKILL');
    return 2 * job.data;
  },
  {
    prefix: PREFIX,
    connection: { ...JSON.parse(CONNECTION), connectionName: `${QUEUE}-${OWNER}` },
    concurrency: 50,
    lockDuration: 500,
    // a starved thread has time to do it
    lockRenewTime: 100,
    stalledInterval: 200,
    drainDelay: 1,
    maxStalledCount: 100,
  },
);
