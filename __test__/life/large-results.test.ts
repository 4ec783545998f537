// Jobs, results, errors and events that are together longer than the longest string of V8: what travels at once is
// bounded.
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { OwnServer } from '../support/own-server.js';
import { Program } from '../support/program.js';

/** Together some 560 million characters; 2^29 is the limit. */
const JOBS = 56;
const SIZE = 10_000_000;
const LIMIT_MS = 300_000;

describe('large texts', () => {
  let server: OwnServer;
  const programs: Program[] = [];

  beforeEach(async () => {
    server = await OwnServer.start();
  });

  afterEach(async () => {
    for (const program of programs.splice(0)) await program.kill();
    await server.close();
  });

  /** Runs a program to its end, and gives what it said. */
  async function run(file: string, env: Record<string, string | number> = {}): Promise<string[]> {
    const all = { QUEUE: 'large', CONNECTION: JSON.stringify(server.connection), JOBS, SIZE, ...env };
    const program = Program.start(file, { env: all });
    programs.push(program);
    expect(await program.end(LIMIT_MS), program.errors).toEqual({ code: 0, signal: null });
    return program.lines;
  }

  it('of jobs that end in one tick while the worker closes are stored, and told', { timeout: LIMIT_MS }, async () => {
    expect(await run('large-results.mjs', { CLOSES: 1 })).toEqual([`ended ${JOBS}`]);
    const [told] = await run('large-events.mjs');
    expect(Number(told?.replace('told ', ''))).toBeGreaterThan(JOBS * SIZE);
  });

  it('of failed tries are stored, and told', { timeout: LIMIT_MS }, async () => {
    expect(await run('large-results.mjs', { FAILS: 1 })).toEqual([`ended ${JOBS}`]);
    const [told] = await run('large-events.mjs');
    expect(Number(told?.replace('told ', ''))).toBeGreaterThan(JOBS * SIZE);
  });

  it('of data are added in one tick, and taken at once', { timeout: LIMIT_MS }, async () => {
    expect(await run('large-jobs.mjs')).toEqual([`added ${JOBS}`, `whole ${JOBS}`]);
  });
});
