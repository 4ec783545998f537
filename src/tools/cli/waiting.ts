import { setTimeout } from 'node:timers/promises';

/** Resolves after that time, or at once when the command is to end. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => {});
}
