/**
 * What no queue can be below: handlers that sleep, one after the other, and one PING for each. A server that is woken so often spends
 * most of this on waking up, and so does Node; jobs that end one at a time pay it whatever library runs them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Server } from './server.js';

export interface Beneath {
  /** Milliseconds that a handler sleeps, as those of `scenarios/waiting.ts` do. */
  readonly ms: number;
  readonly redisCpuMicros: number;
  readonly nodeCpuMicros: number;
}

const HANDLERS_MS = [5, 20, 100];
const SECONDS_EACH = 2;

export async function measureBeneath(server: Server): Promise<Beneath[]> {
  const all: Beneath[] = [];
  for (const ms of HANDLERS_MS) all.push(await handlersOf(ms, server));
  return all;
}

async function handlersOf(ms: number, server: Server): Promise<Beneath> {
  const handlers = Math.round((SECONDS_EACH * 1_000) / ms);
  const [redisBefore, nodeBefore] = [await server.cpuMicros(), process.cpuUsage()];
  for (let i = 0; i < handlers; i += 1) {
    await sleep(ms * (0.5 + Math.random()));
    await server.ping();
  }
  const { user, system } = process.cpuUsage(nodeBefore);
  const redis = (await server.cpuMicros()) - redisBefore;
  return { ms, redisCpuMicros: redis / handlers, nodeCpuMicros: (user + system) / handlers };
}

/** As a report says it. */
export function beneathLine(beneath: readonly Beneath[]): string {
  const list = (values: number[]) => values.map((value) => value.toFixed(0)).join(', ');
  const redis = list(beneath.map(({ redisCpuMicros }) => redisCpuMicros));
  const node = list(beneath.map(({ nodeCpuMicros }) => nodeCpuMicros));
  return `handlers of ${list(beneath.map(({ ms }) => ms))} ms, one at a time, and a PING for each, without any queue: ${redis} us of Redis CPU, ${node} us of Node CPU`;
}
