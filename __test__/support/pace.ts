/**
 * The pace of this machine, at this moment: how long known work takes, which never changes. Limits of time that are multiples of it mean as
 * much work on a slow machine as on a fast one. The known script does what scripts of queues do most: it calls commands, packs and unpacks
 * values, and joins text. It touches no key, so that it runs on any server. The known work of this process makes, writes and reads JSON.
 * Either takes about a millisecond on a machine of 2025. The least of several counts: the others were interrupted.
 */
import type { Redis } from 'ioredis';

const TIMES = 8;
const TEXT = 'x'.repeat(100);
/** The last argument of a known script that measures the pace, by which a server's log of slow commands tells it from others. */
const MARK = 'pace';
const SCRIPT = `
  for _ = 1, ARGV[2] do
    local kept = {}
    for i = 1, 300 do
      local row = cmsgpack.pack({ i, 'name', { attempts = i, data = ARGV[1] } })
      redis.call('ECHO', row)
      kept[i] = cmsgpack.unpack(row)[3].data .. i
    end
    redis.call('ECHO', table.concat(kept))
  end
`;

/** Runs the known script so many times over, as one script about something; gives its milliseconds as the server counts them. */
export async function runKnownScript(server: Redis, times: number, about: string): Promise<number> {
  // time stands still within a script of newer servers
  const before = await microsOfScripts(server);
  await server.eval(SCRIPT, 0, TEXT, times, about);
  return ((await microsOfScripts(server)) - before) / 1_000;
}

async function microsOfScripts(server: Redis): Promise<number> {
  return Number(/^cmdstat_eval:calls=\d+,usec=(\d+)/m.exec(await server.info('commandstats'))?.[1] ?? 0);
}

/** Milliseconds that the known script takes now. */
export async function scriptPace(server: Redis): Promise<number> {
  let least = Infinity;
  for (let i = 0; i < TIMES; i++) least = Math.min(least, await runKnownScript(server, 1, MARK));
  return least;
}

/** Whether a script with these arguments measures the pace. */
export function measuresPace(args: readonly string[]): boolean {
  return args.at(-1) === MARK;
}

/** Does the known work of this process so many times over without a pause; gives the milliseconds that it took. */
export function doKnownWork(times: number): number {
  const begin = performance.now();
  let sum = 0;
  for (let time = 0; time < times; time++) {
    const rows = Array.from({ length: 1_000 }, (_, i) => ({
      id: `${i}`,
      name: 'name',
      opts: { attempts: i },
      data: TEXT,
    }));
    const read = JSON.parse(JSON.stringify(rows)) as typeof rows;
    for (const { opts, data } of read) sum += opts.attempts + data.length;
  }
  if (sum === 0) throw new Error('the known work was not done');
  return performance.now() - begin;
}

/** Milliseconds that the known work of this process takes now. */
export function workPace(): number {
  return Math.min(...Array.from({ length: TIMES }, () => doKnownWork(1)));
}
