// Pins what is done in another way on Windows, as far as it can be seen elsewhere.
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Child } from '../../src/sandbox/child.js';

const PROCESSOR = fileURLToPath(new URL('../parity/processors/default.cjs', import.meta.url));
const { forCmd } = (await import(new URL('../../.ci/step.mjs', import.meta.url).href)) as {
  forCmd(arg: string): string;
};
const platform = Object.getOwnPropertyDescriptor(process, 'platform') as PropertyDescriptor;

beforeEach(() => void Object.defineProperty(process, 'platform', { ...platform, value: 'win32' }));
afterEach(() => void Object.defineProperty(process, 'platform', platform));

it('a child is asked to end by a message: a signal would end it at once', async () => {
  const child = new Child(PROCESSOR, {});
  await child.init();
  const { childProcess } = child;
  if (!childProcess) throw new Error('it is no process');
  const signal = vi.spyOn(childProcess, 'kill');
  await child.kill('SIGTERM');
  expect([signal.mock.calls, child.exitCode]).toEqual([[], 0]);
});

it.each([
  ['queue.add', 'queue.add'],
  ['--manifest-path=crates/node/Cargo.toml', '--manifest-path=crates/node/Cargo.toml'],
  ['a|b', '"a|b"'],
  ['two words', '"two words"'],
  ['say "so"', '"say \\"so\\""'],
  ['C:\\Program Files\\nodejs\\node.exe', '"C:\\Program Files\\nodejs\\node.exe"'],
])('an argument of a script reaches its command whole: %s', (argument, given) => {
  expect(forCmd(argument)).toBe(given);
});
