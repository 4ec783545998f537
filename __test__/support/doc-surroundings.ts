import type { Use } from './doc-uses.js';

/** What stands before a block of the docs, and behind it, so that it is a program. */
export function surround(block: string, { before = '', after = '', endsByItself = false }: Use): string {
  const code = [before, block, after].join('\n');
  const bare = withoutComments(code);
  const name = /new (?:Worker|Queue|QueueEvents)(?:<[^>(]*>)?\(\s*'([\w-]+)'/.exec(bare)?.[1] ?? 'mail';
  const fixtures = Object.entries(FIXTURES)
    .filter(([word]) => uses(bare, word) && !declares(bare, word))
    .map(([word, value]) => `const ${word} = ${value.replace('NAME', name)};`);
  const needed = [...fixtures, bare].join('\n');
  const imported = EXPORTS.filter((word) => new RegExp(`\\b${word}\\b`).test(needed) && !imports(bare, word));
  return [
    ...(imported.length > 0 ? [`import { ${imported.join(', ')} } from 'chasquimq';`] : []),
    ...(/\bonce\(/.test(bare) ? ["import { once } from 'node:events';"] : []),
    ...fixtures,
    code,
    ...(endsByItself ? [] : ['process.exit();']),
    'export {};',
  ].join('\n');
}

const ADDRESS = /\{ host: '(?:127\.0\.0\.1|localhost)'(?:, port: 6379)? \}/g;
const HERE = "JSON.parse(process.env.CONNECTION ?? '')";

/** The same program, with the server that the tests have. */
export const atTestServer = (program: string): string => program.replaceAll(ADDRESS, HERE);

/** What pages have shown how to make. */
const FIXTURES: Readonly<Record<string, string>> = {
  connection: HERE,
  queue: `new Queue('NAME', { connection: ${HERE} })`,
  worker: `new Worker('NAME', async (job) => job.data, { connection: ${HERE} })`,
  events: `new QueueEvents('NAME', { connection: ${HERE}, lastEventId: '0-0' })`,
  flows: `new FlowProducer({ connection: ${HERE} })`,
};

const EXPORTS = [
  ...['Queue', 'Worker', 'QueueEvents', 'QueueEventsProducer', 'FlowProducer', 'Job', 'MetricsTime'],
  ...['UnrecoverableError', 'DelayedError', 'WaitingChildrenError', 'WaitingError', 'RateLimitError'],
  ...['GroupMaxSizeExceededError', 'JobExpiredError'],
];

const withoutComments = (code: string): string => code.replaceAll(/(^|\s)\/\/ .*$/gm, '$1');

const uses = (code: string, word: string): boolean => new RegExp(`(?<![.'\\w])${word}\\b(?!\\s*:|['-])`).test(code);

const declares = (code: string, word: string): boolean => new RegExp(`\\b(const|let) ${word}\\b`).test(code);

const imports = (code: string, word: string): boolean =>
  new RegExp(`import (type )?\\{[^}]*\\b${word}\\b(?! as)[^}]*\\}`).test(code);
