// bull-board 9.10 over our queues does what it does over BullMQ's: each read of its API, and each of its buttons.
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { useStage } from '../support/stage.js';

const AS_BULLMQ = fileURLToPath(new URL('programs/as-bullmq.mjs', import.meta.url));

const stage = useStage(chasquimq);

/** What a board over the queues of that library answers, request by request, and what is then in the queues. */
async function answers(library: string): Promise<string[]> {
  const env = { LIBRARY: library, QUEUE: stage.name(library) };
  const nodeOptions = ['--import', AS_BULLMQ];
  const board = stage.keep(Program.start('../../clients/programs/board.mjs', { env, nodeOptions }));
  expect(await board.end(), board.errors).toEqual({ code: 0, signal: null });
  return board.lines;
}

it('bull-board answers the same over either library, its flow tree included', async () => {
  const expected = await answers('bullmq');
  expect(expected.filter((line) => line.startsWith('answer')).length).toBeGreaterThan(80);
  expect(expected.filter((line) => /"GET [^"]+","status":5\d\d/.test(line))).toEqual([]);
  // its flow producer shares the queue's backend
  expect(expected).toContain('flows true true');
  const ours = await answers('chasquimq');
  expect(ours).toEqual(expected);
  const listsWaiting = ours.find((line) => /"GET [^"]+status=waiting/.test(line)) ?? '';
  expect(listsWaiting.match(/"id":"shared"/g), 'a job of a group is shown once').toHaveLength(1);
});
