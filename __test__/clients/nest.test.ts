// A Nest application with @nestjs/bullmq sees the same on either library: what its processors, listeners and services are told.
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';

const AS_BULLMQ = fileURLToPath(new URL('programs/as-bullmq.mjs', import.meta.url));

const stage = useStage(chasquimq);

/** What the application saw on that library. It ends by itself once it is closed. */
async function seen(library: string): Promise<string[]> {
  const env = { LIBRARY: library, QUEUE: stage.name(library) };
  const nodeOptions = ['--import', AS_BULLMQ];
  const application = stage.keep(Program.start('../../clients/programs/nest.mjs', { env, nodeOptions }));
  expect(await application.end(), application.errors).toEqual({ code: 0, signal: null });
  return application.lines;
}

it('@nestjs/bullmq does the same on either library', async () => {
  const expected = await seen('bullmq');
  expect(expected.filter((line) => line.startsWith('queue')).length).toBeGreaterThan(40);
  expect(await seen('chasquimq')).toEqual(expected);
});
