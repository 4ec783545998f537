// A chaos run (main.ts) that is short enough for every test run, with faults of each kind.
import { describe, expect, it } from 'vitest';
import { runChaos } from './run.js';

/** Faults come for 20 s; what they leave is done within a lease, on a quiet machine. */
const LIMIT_MS = 300_000;

describe('chaos', () => {
  it(
    'loses no job, adds none twice, records none twice, and runs again only what a fault interrupted',
    { timeout: LIMIT_MS },
    async () => {
      const { account, faults } = await runChaos({ seconds: 20, seed: 5 });
      const nothing = Object.fromEntries(Object.keys(account.wrong).map((name) => [name, []]));
      expect(account.wrong).toEqual(nothing);
      expect(faults.length).toBeGreaterThan(5);
      expect(account.completed).toBeGreaterThan(100);
    },
  );
});
