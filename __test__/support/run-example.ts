// Installs an example as its users will from a release, and starts it: `npm run example -- web-api`. The packages come from a registry on this
// machine, which has those of this clone.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { copyExample, exampleEnvironment, neededBy } from './examples.js';
import { Registry } from './registry.js';

const [name = ''] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'chasquimq-example-'));

async function npm(project: string, registry: string, args: string[]): Promise<boolean> {
  const child = spawn('npm', args, { cwd: project, env: exampleEnvironment(folder, registry), stdio: 'inherit' });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0 && !isAskedToEnd) process.exitCode = code ?? 1;
  return code === 0;
}

// Ctrl-C reaches the example too, which ends in order; what is left is done then
let isAskedToEnd = false;
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => (isAskedToEnd = true));
const registry = await Registry.start(folder, neededBy([name]));
try {
  const project = copyExample(name, folder);
  if (await npm(project, registry.url, ['install'])) await npm(project, registry.url, ['start']);
} finally {
  await registry.close();
  rmSync(folder, { recursive: true, force: true });
}
