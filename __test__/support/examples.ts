import { cpSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './registry.js';

const EXAMPLES = join(ROOT, 'examples');

export function exampleNames(): string[] {
  return readdirSync(EXAMPLES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
}

/** The packages of others that examples ask for; a registry on this machine has what we publish anyway. */
export function neededBy(names: string[]): string[] {
  const manifests = names.map((name) => readFileSync(join(EXAMPLES, name, 'package.json'), 'utf8'));
  const asked = manifests.map((text) => JSON.parse(text) as Record<string, Record<string, string>>);
  const all = asked.flatMap(({ dependencies, devDependencies }) =>
    Object.entries({ ...dependencies, ...devDependencies }),
  );
  return [...new Set(all.filter(([name, range]) => !`${name} ${range}`.includes('chasquimq')).map(([name]) => name))];
}

/** Copies an example into a folder of its own within `folder`, which is returned. */
export function copyExample(name: string, folder: string): string {
  const project = join(folder, name);
  cpSync(join(EXAMPLES, name), project, { recursive: true, filter: (path) => !/node_modules|dist$/.test(path) });
  return project;
}

/** What npm runs in, for an example: it asks this registry, and knows nothing of an npm that has started this process. */
export function exampleEnvironment(folder: string, registry: string): NodeJS.ProcessEnv {
  const { PATH, TMPDIR, PORT, REDIS_URL, DATABASE_URL } = process.env;
  return {
    ...{ PATH, TMPDIR, PORT, REDIS_URL, DATABASE_URL, HOME: join(folder, 'home') },
    ...{ npm_config_registry: registry, npm_config_update_notifier: 'false', npm_config_audit: 'false' },
  };
}
