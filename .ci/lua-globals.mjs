// No file of a lua/ uses a global but what the build gives it, nor makes one: a name that is not declared would be found when it is run.
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { isEntry, main, root, Stop } from './step.mjs';

const FOLDERS = ['chasquimq', 'chasquimq-migrate'].map((crate) => join(root, 'crates', crate, 'lua'));

export async function checkLuaGlobals() {
  // on a fresh clone it is installed by now
  const { default: luaparse } = await import('luaparse');
  const build = readFileSync(join(root, 'crates', 'chasquimq-build', 'src', 'lib.rs'), 'utf8');
  const names = /const GLOBALS: &str =\s*"([^"]*)"/.exec(build)?.[1];
  if (!names) throw new Stop('chasquimq-build has no GLOBALS any more');
  const known = new Set(['require', ...names.split(',')]);
  const filesIn = (folder) => readdirSync(folder, { recursive: true }).map((name) => join(folder, name));
  const files = FOLDERS.flatMap(filesIn).filter((file) => file.endsWith('.lua'));
  const unknown = files.flatMap((file) => {
    const { globals } = luaparse.parse(readFileSync(file, 'utf8'), { luaVersion: '5.1', scope: true, locations: true });
    const strange = globals.filter((global) => !known.has(global.name));
    return strange.map(({ name, loc }) => `${relative(root, file)}:${loc.start.line}: ${name} is not declared`);
  });
  if (files.length === 0 || unknown.length > 0) throw new Stop(['globals in lua/:', ...unknown].join('\n'));
}

if (isEntry(import.meta.url)) await main(checkLuaGlobals);
