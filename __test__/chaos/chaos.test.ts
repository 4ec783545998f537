// A chaos run (main.ts) that is short enough for every test run, with faults of each kind.
import { describe, expect, it } from 'vitest';
import { runChaos } from './run.js';
import type { ChaosOptions } from './run.js';

/** Faults come for 20 s or less; what they leave is done within a lease, on a quiet machine. */
const LIMIT_MS = 300_000;

describe('chaos', () => {
  it.each<[string, ChaosOptions]>([
    ['one server', { seconds: 15, seed: 5 }],
    [
      'a master and its replica under sentinels',
      { topology: 'sentinel', seconds: 1, each: true, seed: 5, only: ['failover', 'kill-master', 'cut'] },
    ],
    [
      'a cluster',
      { topology: 'cluster', seconds: 1, each: true, seed: 5, only: ['failover', 'move-slot', 'kill-master', 'cut'] },
    ],
  ])(
    'on %s loses no job, adds none twice, records none twice, lets none wait beside an idle worker, runs none that has expired or was cancelled, and runs again only what a fault interrupted',
    { timeout: LIMIT_MS },
    async (_, options) => {
      const { account, faults, evidence } = await runChaos(options);
      const nothing = Object.fromEntries(Object.keys(account.wrong).map((name) => [name, []]));
      expect(account.wrong, `everything is in ${evidence}`).toEqual(nothing);
      expect(faults.length).toBeGreaterThanOrEqual(options.only?.length ?? 6);
      expect(account.completed).toBeGreaterThan(100);
      expect(account.unrun).toBeGreaterThan(0);
      // the watch of idleness has seen something
      expect(account.idleness.jobs).toBeGreaterThan(100);
      expect(account.idleness.idleMs).toBeGreaterThan(0);
    },
  );
});
