// The processor of a worker whose handlers run in a process, or a thread, of their own. Its ledger is the worker's.
import { Queue } from 'chasquimq';
import { runNoted } from './runs.mjs';

const { QUEUE, CONNECTION } = process.env;
const queue = new Queue(QUEUE, { connection: JSON.parse(CONNECTION), streams: { events: { maxLen: 100_000_000 } } });
queue.on('error', () => undefined);

export default (job, token) => runNoted(job, token, { queue, limit: (ms) => queue.rateLimit(ms) });
