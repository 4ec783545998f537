// Fails when files of src/ import each other in a circle at run time. Type imports are gone by then and do not count.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { root, say, Stop } from './step.mjs';

export async function checkImportCycles() {
  const { default: ts } = await import('typescript');
  const files = readdirSync(join(root, 'src'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts'));
  const imports = new Map(files.map((name) => [normalize(name), runtimeImports(ts, name)]));
  const done = new Set();
  for (const name of imports.keys()) {
    const cycle = findCycle(name, imports, [], done);
    if (cycle) throw new Stop(`import cycle in src/: ${cycle.join(' -> ')}`);
  }
  say(`> import cycles: none in ${imports.size} files`);
}

function runtimeImports(ts, name) {
  const source = ts.createSourceFile(name, readFileSync(join(root, 'src', name), 'utf8'), ts.ScriptTarget.Latest);
  return source.statements
    .filter((statement) => ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement))
    .filter((statement) => !(statement.isTypeOnly ?? statement.importClause?.isTypeOnly))
    .map((statement) => statement.moduleSpecifier?.text)
    .filter((specifier) => specifier?.startsWith('.'))
    .map((specifier) => normalize(join(dirname(name), specifier.replace(/\.js$/, '.ts'))));
}

function findCycle(name, imports, path, done) {
  if (path.includes(name)) return [...path.slice(path.indexOf(name)), name];
  if (done.has(name)) return null;
  for (const next of imports.get(name) ?? []) {
    const cycle = findCycle(next, imports, [...path, name], done);
    if (cycle) return cycle;
  }
  done.add(name);
  return null;
}
