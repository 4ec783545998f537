// Pins that pages name no method and no field of a class that is not there.
import ts from 'typescript';
import { expect, it } from 'vitest';
import { pages, textOf } from '../support/doc-blocks.js';

const QUEUE_BASE = 'src/queue/queue-base.ts';
/** What pages call an object, and the files with its members, own and inherited. */
const OBJECTS: Readonly<Record<string, readonly string[]>> = {
  queue: [
    'src/queue/queue.ts',
    'src/queue/queue-administration.ts',
    'src/queue/queue-cancelling.ts',
    'src/queue/queue-jobs.ts',
    'src/queue/queue-groups.ts',
    'src/queue/queue-getters.ts',
    QUEUE_BASE,
  ],
  worker: ['src/worker/worker.ts', QUEUE_BASE],
  job: ['src/job/job.ts'],
  flows: ['src/flow/flow-producer.ts'],
  flowProducer: ['src/flow/flow-producer.ts'],
  queueEvents: ['src/events/queue-events.ts', QUEUE_BASE],
};
const OF_EMITTERS = ['on', 'once', 'off', 'emit'];
/** Ends of files. */
const NO_MEMBERS = ['ts', 'js', 'mjs', 'md'];

const members = new Map(Object.entries(OBJECTS).map(([name, files]) => [name, new Set(files.flatMap(membersOf))]));

// programs for BullMQ 5 have members that the classes of 6 have not
it.each(pages().filter((page) => page !== 'docs/v5.md'))('%s', (page) => {
  const named = [...textOf(page).matchAll(/(?<![\w./-])(queue|worker|job|flows|flowProducer|queueEvents)\.(\w+)/g)];
  const unknown = named
    .filter(([, object = '', member = '']) => !members.get(object)?.has(member) && !NO_MEMBERS.includes(member))
    .map(([text]) => text);
  expect(unknown).toEqual([]);
});

/** Names of what the classes of a file have. */
function membersOf(file: string): string[] {
  const source = ts.createSourceFile(file, textOf(file), ts.ScriptTarget.Latest, true);
  const classes = source.statements.filter(ts.isClassDeclaration);
  return [...OF_EMITTERS, ...classes.flatMap(({ members }) => members.map((member) => member.name?.getText() ?? ''))];
}
