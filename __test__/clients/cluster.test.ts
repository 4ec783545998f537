// Processes of node:cluster share the work of a queue, and end once they have closed what they opened.
import { expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';

const stage = useStage(chasquimq);

it.each(['bullmq', 'chasquimq'])('%s', async (library) => {
  const env = { QUEUE: stage.name(library), LIBRARY: library };
  const program = stage.keep(Program.start('../../clients/programs/cluster.mjs', { env }));
  expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
  expect(JSON.parse(program.lines.join())).toEqual({ doubled: [2, 4], processes: 2, codes: [0, 0] });
});
