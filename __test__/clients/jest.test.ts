// Tests that Jest runs over our queues. It loads the package into a realm of its own for each file, with classes of its own.
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { PACKAGES, ROOT } from '../support/registry.js';
import { useStage } from '../support/stage.js';

const CONFIG = {
  rootDir: ROOT,
  roots: ['<rootDir>/__test__/clients/programs'],
  testMatch: ['**/jest.probes.cjs'],
  modulePathIgnorePatterns: ['<rootDir>/target'],
  transform: {},
};
const ARGUMENTS = ['--runInBand', '--watchman=false', '--json', '--config', JSON.stringify(CONFIG)];

interface Results {
  testResults: { message: string; assertionResults: { fullName: string; status: string }[] }[];
}

const stage = useStage(chasquimq);

it.each(['bullmq', 'chasquimq'])('%s', async (library) => {
  const env = { QUEUE: stage.queueName, LIBRARY: library };
  const text = `require(${JSON.stringify(join(PACKAGES, 'jest'))}).run(${JSON.stringify(ARGUMENTS)})`;
  const program = stage.keep(Program.startText(text, { env, kind: 'commonjs' }));
  await program.ended;
  const [{ assertionResults, message }] = (JSON.parse(program.lines.join('\n')) as Results).testResults;
  const failed = assertionResults.filter(({ status }) => status !== 'passed').map(({ fullName }) => fullName);
  expect(failed, message).toEqual([]);
  expect(assertionResults.length).toBeGreaterThan(100);
});
