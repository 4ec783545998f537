// bullmq-otel tells OpenTelemetry the same of either library: the spans, what they lie in, and what was counted.
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';

const AS_BULLMQ = fileURLToPath(new URL('programs/as-bullmq.mjs', import.meta.url));

/** A scan for stalled jobs that found none: no span with ours (telemetry-of-scans, a wanted difference). */
const FOUND_NOTHING = /^span \["moveStalledJobsToWait .*"bullmq\.worker\.stalled\.jobs",\[\]/;

const stage = useStage(chasquimq);

async function told(library: string): Promise<string[]> {
  const env = { LIBRARY: library, QUEUE: stage.name(library) };
  const nodeOptions = ['--import', AS_BULLMQ];
  const program = stage.keep(Program.start('../../clients/programs/otel.mjs', { env, nodeOptions }));
  expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
  return program.lines.filter((line) => !FOUND_NOTHING.test(line)).sort();
}

it('bullmq-otel tells the same spans and metrics of either library', async () => {
  const expected = await told('bullmq');
  expect(expected.filter((line) => line.startsWith('span')).length).toBeGreaterThan(30);
  expect(await told('chasquimq')).toEqual(expected);
});
