// Modules of a crate do not need each other in a circle, and no file that ships is longer than one can read at once.
//
// A module is a file. What it needs are the paths in it that lead to another file of its crate: `crate::`, `super::` and `self::`.
// A name that a module only hands on (`pub use`) is needed of the file that has it. Tests do not count.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { isEntry, main, root, say, Stop } from './step.mjs';

const CRATES = [
  'chasquimq',
  'chasquimq-build',
  'chasquimq-counts',
  'chasquimq-migrate',
  'chasquimq-node',
  'chasquimq-typed',
];
const MOST_LINES = 400;
// At the head of a longer file, with the reason.
const STAYS_WHOLE = /^\/\/! Stays whole: ./m;

export function checkRustModules() {
  const faults = CRATES.flatMap((name) => {
    const crate = readCrate(join(root, 'crates', name, 'src'));
    return [...tooLong(crate), ...circles(crate)];
  });
  if (faults.length > 0) throw new Stop(['modules in crates/:', ...faults].join('\n'));
  say('> modules in crates/: no circle, none too long');
}

function tooLong(crate) {
  const long = [...crate.values()].filter(({ text }) => text.split('\n').length - 1 > MOST_LINES);
  return long
    .filter(({ text }) => !STAYS_WHOLE.test(text))
    .map(({ file }) => `${file}: more than ${MOST_LINES} lines, and no "//! Stays whole: <reason>"`);
}

/** The files of a crate by their module paths, each with the modules that it needs. */
function readCrate(folder) {
  const crate = new Map();
  for (const name of readdirSync(folder, { recursive: true }).map(String)) {
    if (!name.endsWith('.rs')) continue;
    const text = readFileSync(join(folder, name), 'utf8');
    const parts = name.slice(0, -'.rs'.length).split(sep);
    if (['mod', 'lib', 'main'].includes(parts.at(-1))) parts.pop();
    const code = text.replace(/\n#\[cfg\(test\)\]\nmod \w+ \{[^]*$/, '').replace(/\/\/.*$/gm, '');
    crate.set(parts.join('::'), { file: relative(root, join(folder, name)), text, code });
  }
  for (const [path, module] of crate) module.handsOn = handedOn(path, module.code);
  for (const [path, module] of crate) module.needs = needs(path, module.code, crate);
  return crate;
}

/** Where the names of each `pub use` come from. */
function handedOn(path, code) {
  const names = new Map();
  for (const [, tree] of code.matchAll(/\bpub(?:\(\w+\))? use ([^;]+);/g)) {
    for (const [target, as] of leaves(tree)) names.set(as, absolute(target, path));
  }
  return names;
}

function needs(path, code, crate) {
  const found = new Set();
  const own = code.replace(/\bpub(?:\(\w+\))? use [^;]+;/g, '');
  const uses = [...own.matchAll(/\buse ([^;]+);/g)].flatMap(([, tree]) => leaves(tree).map(([target]) => target));
  const children = [...own.matchAll(/\bmod (\w+);/g)].map(([, child]) => child);
  const starts = ['crate', 'super', 'self', ...children].join('|');
  const inline = own.replace(/\buse [^;]+;/g, '').match(new RegExp(`(?<![\\w:])(?:${starts})(?:::\\w+)+`, 'g')) ?? [];
  for (const target of [...uses, ...inline]) {
    const owner = ownerOf(absolute(target, path), crate);
    if (owner !== undefined && owner !== path) found.add(owner);
  }
  return found;
}

/** The paths of a tree such as `a::{b, c::d as e}`, each with the name that it is given. */
function leaves(tree, prefix = '') {
  const text = tree.trim();
  const open = text.indexOf('{');
  if (open >= 0) {
    const inner = text.slice(open + 1, text.lastIndexOf('}'));
    return atTopLevel(inner).flatMap((part) => leaves(part, prefix + text.slice(0, open)));
  }
  const [path, as] = (prefix + text).replace(/::self$/, '').split(/\s+as\s+/);
  return [[path, as ?? path.split('::').at(-1)]];
}

function atTopLevel(text) {
  const parts = [''];
  let depth = 0;
  for (const char of text) {
    if (char === '{') depth++;
    if (char === '}') depth--;
    if (char === ',' && depth === 0) parts.push('');
    else parts[parts.length - 1] += char;
  }
  return parts.filter((part) => part.trim());
}

/** A path from the crate's root; undefined for what is of another crate. */
function absolute(target, path) {
  const parts = target.split('::');
  let base = path === '' ? [] : path.split('::');
  if (parts[0] === 'crate') base = [];
  else if (parts[0] === 'super') base = base.slice(0, -1);
  else if (parts[0] !== 'self') return [...base, ...parts].join('::');
  parts.shift();
  for (; parts[0] === 'super'; parts.shift()) base = base.slice(0, -1);
  return [...base, ...parts].join('::');
}

/** The file that has a name: where it is handed on from, if its module only does that. */
function ownerOf(target, crate) {
  const parts = target.split('::');
  for (let length = parts.length; length >= 0; length--) {
    const path = parts.slice(0, length).join('::');
    const module = crate.get(path);
    if (!module) continue;
    const rest = parts.slice(length);
    const from = rest.length > 0 ? module.handsOn.get(rest[0]) : undefined;
    if (from !== undefined && from !== target) return ownerOf([from, ...rest.slice(1)].join('::'), crate);
    return path === '' ? undefined : path;
  }
  return undefined;
}

function circles(crate) {
  const [done, found] = [new Set(), []];
  const visit = (path, trail) => {
    if (trail.includes(path)) return found.push([...trail.slice(trail.indexOf(path)), path]);
    if (done.has(path)) return undefined;
    for (const next of crate.get(path).needs) visit(next, [...trail, path]);
    return done.add(path);
  };
  for (const path of crate.keys()) visit(path, []);
  const folder = dirname(crate.get('')?.file ?? '');
  return found.map((circle) => `${folder}: a circle: ${circle.join(' -> ')}`);
}

if (isEntry(import.meta.url)) await main(async () => checkRustModules());
