// Writes the pages of docs/ that are made of something else: differences.md of src/tools/doctor/differences.ts, keys.md of what names the keys of a
// queue. `npm run format` does it; lint fails when a page is another.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEntry, main, root, say, Stop } from './step.mjs';

const SCHEMA = 'crates/chasquimq/lua/schema.txt';

const PAGES = {
  'docs/differences.md': { source: 'src/tools/doctor/differences.ts', text: differencesPage },
  'docs/keys.md': { source: SCHEMA, text: keysPage },
};

const IMPACTS = {
  none: 'Nothing to do',
  check: 'Check whether you rely on it',
  breaking: 'Change your code, or how you run it',
};

/** The headings, by the file in which the differences below them stand. */
const TOPICS = {
  connections: 'Connections, closing, and what lies in Redis',
  adding: 'Adding jobs and flows',
  schedulers: 'Job schedulers',
  workers: 'Taking and running jobs',
  outcomes: 'How jobs end',
  queues: 'Queues: getters, limits, many jobs at once',
};

export async function writePages() {
  for (const [page, { text }] of Object.entries(PAGES)) {
    const wanted = await formatted(page, await text());
    if (readFileSync(join(root, page), 'utf8') === wanted) continue;
    writeFileSync(join(root, page), wanted);
    say(`> ${page}: written anew`);
  }
}

export async function checkPages() {
  for (const [page, { source, text }] of Object.entries(PAGES)) {
    if (readFileSync(join(root, page), 'utf8') !== (await formatted(page, await text()))) {
      throw new Stop(`${page} is not what ${source} gives: npm run format writes it anew`);
    }
    say(`> ${page}: as it should be`);
  }
}

async function formatted(page, text) {
  const { format, resolveConfig } = await import('prettier');
  return format(text, { ...(await resolveConfig(join(root, page))), parser: 'markdown' });
}

async function differencesPage() {
  const topics = await Promise.all(
    Object.entries(TOPICS).map(async ([file, heading]) => [heading, (await load(`differences/${file}`))[file]]),
  );
  const all = topics.flatMap(([, list]) => list);
  const { differences } = await load('differences');
  if (differences.length !== all.length)
    throw new Stop('.ci/docs.mjs does not know a file of src/tools/doctor/differences/');
  return page(topics, all);
}

const page = (topics, all) => `# Differences from BullMQ

This page lists what ChasquiMQ does differently from BullMQ 6.7.0 on purpose, what that means when you move, and the test that proves it. Everything
else is meant to be the same. If it is not, that is a bug: please report it.

<!-- Made of src/tools/doctor/differences.ts by \`npm run format\`: edit that. -->

There are ${all.length} differences. ${count(all, 'breaking')} may need a change in your code, or in how you run it; ${count(all, 'check')} are worth a look; the
other ${count(all, 'none')} need nothing from you. Missing features are in [exports, and what is not there yet](parity.md).

## Those that may need a change

${index(all, 'breaking')}

## Those that are worth a look

${index(all, 'check')}
${topics.map(([heading, list]) => `\n## ${heading}\n${list.map(entry).join('')}`).join('')}`;

const count = (all, impact) => all.filter((each) => each.impact === impact).length;

const index = (all, impact) =>
  all
    .filter((each) => each.impact === impact)
    .map(({ id, title }) => `- [${title}](#${id})`)
    .join('\n');

const entry = ({ id, title, bullmq, chasquimq, why, impact, test }) => `
### ${title} <a id="${id}"></a>

- **BullMQ:** ${bullmq}
- **ChasquiMQ:** ${chasquimq}
- **Why:** ${why}
- **When you move:** ${IMPACTS[impact]}. \`${id}\`, [test](../${test})
`;

async function keysPage() {
  const rows = readFileSync(join(root, SCHEMA), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => /^(\S+)\s+(\S+)\s+(\S+)\s+(.*) \| (.*)$/.exec(line));
  const lua = '../crates/chasquimq/lua';
  return `# Keys in Redis

This page lists every key that a queue has in Redis, what it holds, and which file describes its format. Read it when you inspect a server by hand, write
ACL rules, or change what runs in the server. The format of the keys is no API: read queues by the methods of \`Queue\`.

<!-- Made of ${SCHEMA} by \`npm run format\`: edit that. -->

All keys of the queue \`mail\` begin with \`{bull:mail}:\`, its base, made of the prefix and the name. When these have a hash tag of their own, the base is
\`<prefix>:<name>:chasqui:\`, and the tag decides the slot. So no key is one of BullMQ's.

| Key, after the base | Type | Holds | Format |
| --- | --- | --- | --- |
${rows.map(([, name, type, form, holds]) => `| \`${name}\` | ${type} | ${holds} | [${form}](${lua}/${form}.lua) |`).join('\n')}

## When a key is lost

A server with a policy such as \`allkeys-lru\` deletes keys when it is full, and so may a person. Set \`noeviction\`: what a deleted key held is gone. But
the queue goes on without it. What is added from then on runs, nothing runs again that has ended, no call hangs, and no count falls below zero. What other
keys tell is put right at once, or by the next stalled check of a worker (\`stalledInterval\`, 30 s by default). A test deletes each key, one at a time.

| Key | When it is lost |
| --- | --- |
${rows.map(([, name, , , , lost]) => `| \`${name}\` | ${lost} |`).join('\n')}
`;
}

/** A module of src/tools/doctor, which is TypeScript. */
async function load(name) {
  const { build } = await import('esbuild');
  const entryPoints = [join(root, 'src/tools/doctor', `${name}.ts`)];
  const { outputFiles } = await build({ entryPoints, bundle: true, write: false, format: 'esm', logLevel: 'silent' });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}

if (isEntry(import.meta.url)) await main(writePages);
