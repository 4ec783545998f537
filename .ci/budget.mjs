// How much there is of the core, in lines that ship, by part: fails when a part has more than .ci/budget.json allows. A change that needs more
// raises the number in the same commit, with its reason: `node .ci/budget.mjs --write "<why>"`, which lowers those that have become too high, too.
//
// A line is a line, comments and empty ones included. Tests do not count, nor do those within a file of Rust's.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isEntry, main, root, say, Stop } from './step.mjs';

const FILE = join(root, '.ci', 'budget.json');
/** The core's parts, each with its files, and those among them that are not its own. */
const PARTS = {
  lua: { of: ['crates/chasquimq/lua'] },
  engine: {
    of: ['crates/chasquimq/src', 'crates/chasquimq/build.rs', 'crates/chasquimq-build/src'],
    except: ['crates/chasquimq/src/garbage'],
  },
  addon: {
    of: ['crates/chasquimq-node/src', 'crates/chasquimq-node/build.rs'],
    except: ['crates/chasquimq-node/src/queue/migrate.rs'],
  },
  facade: { of: ['src'], except: ['src/v5', 'src/tools'] },
  v5: { of: ['src/v5'] },
};
const SHIPS = /\.(rs|lua|ts)$/;
const IS_TEST = /(^|\/)tests(\.rs$|\/)/;
const TESTS_WITHIN = /\n#\[cfg\(test\)\]\nmod \w+ \{[^]*$/;

export function checkBudget() {
  const { lines: allowed } = JSON.parse(readFileSync(FILE, 'utf8'));
  const lines = counted();
  const parts = Object.keys(PARTS);
  const tooMany = parts.filter((part) => !(lines[part] <= allowed[part]));
  if (tooMany.length > 0) {
    const rows = tooMany.map((part) => `  ${part}: ${lines[part]} lines, ${allowed[part]} are allowed`);
    throw new Stop(['.ci/budget.json: more lines than allowed', ...rows, '  see .ci/budget.mjs'].join('\n'));
  }
  say(`> budget: ${sum(lines)} lines in the core, ${sum(allowed)} allowed`);
}

function counted() {
  return Object.fromEntries(Object.entries(PARTS).map(([part, files]) => [part, linesOf(files)]));
}

function linesOf({ of, except = [] }) {
  const files = of
    .flatMap(filesIn)
    .filter((file) => !except.some((other) => file === other || file.startsWith(`${other}/`)));
  const shipped = files.filter((file) => SHIPS.test(file) && !IS_TEST.test(file));
  return sum(shipped.map((file) => linesIn(readFileSync(join(root, file), 'utf8'))));
}

function filesIn(path) {
  if (!statSync(join(root, path)).isDirectory()) return [path];
  return readdirSync(join(root, path)).flatMap((name) => filesIn(`${path}/${name}`));
}

const linesIn = (text) => text.replace(TESTS_WITHIN, '\n').split('\n').length - 1;
const sum = (lines) => Object.values(lines).reduce((all, some) => all + some, 0);

async function command([flag, why]) {
  if (flag === '--write') {
    if (!why) throw new Stop('say why: node .ci/budget.mjs --write "<why>"');
    writeFileSync(FILE, `${JSON.stringify({ why, lines: counted() }, null, 2)}\n`);
  }
  checkBudget();
}

if (isEntry(import.meta.url)) await main(command);
