// Runtimes other than Node run the quick start. They have no libuv of Node's: the package takes its plain path there.
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { connection } from '../support/redis.js';
import { bun, deno, oldestBun } from '../support/runtimes.js';
import { useStage } from '../support/stage.js';

const QUICK_START = fileURLToPath(new URL('programs/runtime.mjs', import.meta.url));
const LONG_MS = 100_000;

describe('runtimes', () => {
  const stage = useStage(chasquimq);

  it.each([
    ['Node', process.execPath, []],
    ['Bun', bun, []],
    ['the oldest Bun', oldestBun, []],
    ['Deno', deno, ['run', '--allow-all']],
  ])('%s runs the quick start', { timeout: LONG_MS }, async (_, command, args) => {
    const env = { ...process.env, QUEUE: stage.queueName, CONNECTION: JSON.stringify(connection) };
    const { stdout } = await promisify(execFile)(command, [...args, QUICK_START], { env, timeout: LONG_MS });
    const twice = [0, 2, 4, 6, 8];
    expect(JSON.parse(stdout.trim())).toEqual({ results: [...twice, ...twice], reason: 'no' });
  });

  it('Deno without --allow-ffi is told what is wrong', { timeout: LONG_MS }, async () => {
    const env = { ...process.env, QUEUE: stage.queueName, CONNECTION: JSON.stringify(connection) };
    const args = ['run', '--allow-read', '--allow-env', '--allow-sys', '--allow-net', QUICK_START];
    const run = promisify(execFile)(deno, args, { env, timeout: LONG_MS });
    const { stderr } = await run.then(
      () => ({ stderr: 'it ran' }),
      (error: { stderr: string }) => error,
    );
    expect(stderr).toContain('--allow-ffi');
  });
});
