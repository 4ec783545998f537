import { Queue } from 'chasquimq';

export const connection = { url: process.env.REDIS_URL ?? 'redis://localhost:6379' };

/** The queue, made when it is first asked for: `next build` loads the routes, too. `next dev` loads them again and again: one is enough. */
export function reports() {
  return (globalThis.reports ??= new Queue('reports', { connection, defaultJobOptions: { attempts: 3 } }));
}
