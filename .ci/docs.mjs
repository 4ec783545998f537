// Writes docs/differences.md from src/doctor/differences.ts. `npm run format` does it; lint fails when the page is another.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEntry, main, root, say, Stop } from './step.mjs';

const PAGE = 'docs/differences.md';

const IMPACTS = {
  none: 'Nothing to do',
  check: 'Look whether you rely on it',
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

export async function writeDifferences() {
  const text = await differencesPage();
  if (readFileSync(join(root, PAGE), 'utf8') === text) return;
  writeFileSync(join(root, PAGE), text);
  say(`> ${PAGE}: written anew`);
}

export async function checkDifferences() {
  if (readFileSync(join(root, PAGE), 'utf8') !== (await differencesPage())) {
    throw new Stop(`${PAGE} is not what src/doctor/differences.ts gives: npm run format writes it anew`);
  }
  say(`> ${PAGE}: as it should be`);
}

export async function differencesPage() {
  const topics = await Promise.all(
    Object.entries(TOPICS).map(async ([file, heading]) => [heading, (await load(`differences/${file}`))[file]]),
  );
  const all = topics.flatMap(([, list]) => list);
  const { differences } = await load('differences');
  if (differences.length !== all.length) throw new Stop('.ci/docs.mjs does not know a file of src/doctor/differences/');
  const { format, resolveConfig } = await import('prettier');
  const options = await resolveConfig(join(root, PAGE));
  return format(page(topics, all), { ...options, parser: 'markdown' });
}

const page = (topics, all) => `# Differences from BullMQ

This page lists everything that ChasquiMQ does on purpose in another way than BullMQ 6.7.0, what that means when you move, and the test that
proves it. Everything else is meant to be the same; where it is not, that is a fault: please report it.

<!-- Made of src/doctor/differences.ts by \`npm run format\`: edit that. -->

There are ${all.length}. ${count(all, 'breaking')} of them may need a change of your code, or of how you run it; ${count(all, 'check')} are worth a look; the
other ${count(all, 'none')} ask nothing of you. What is not there at all is in [exports, and what is not there yet](parity.md).

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

/** A module of src/doctor, which is TypeScript. */
async function load(name) {
  const { build } = await import('esbuild');
  const entryPoints = [join(root, 'src/doctor', `${name}.ts`)];
  const { outputFiles } = await build({ entryPoints, bundle: true, write: false, format: 'esm', logLevel: 'silent' });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}

if (isEntry(import.meta.url)) await main(writeDifferences);
