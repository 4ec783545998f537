/** Installs the published packages into an empty project, and runs a program there: some jobs, added, run, and waited for. */
import { execFile } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { connection } from '../support/redis.js';
import { ROOT, version, type Registry } from '../support/registry.js';
import { firstLine, type Runtime } from './runtimes.js';

const run = promisify(execFile);
const PROGRAMS = join(ROOT, '__test__/clients/programs');
const LIMIT_MS = 60_000;
const TWICE = [0, 2, 4, 6, 8];
const WANTED = JSON.stringify({ results: [...TWICE, ...TWICE], reason: 'no' });
/** The programs, and the name that each imports: our own, and that of BullMQ. */
const USES = { 'start.mjs': 'chasquimq', 'start.cjs': 'bullmq' };

export interface Outcome {
  row: string[];
  state: 'ran' | 'failed' | 'not here';
}

export async function runOn(runtime: Runtime, registry: Registry, folder: string): Promise<Outcome> {
  const { title, library, command, lack } = runtime;
  if (lack) return { row: [title, library, `not here: ${lack}`], state: 'not here' };
  try {
    const project = await install(library, registry, folder);
    const [program = '', ...args] = command;
    for (const [file, name] of Object.entries(USES)) {
      const env = { ...process.env, CONNECTION: JSON.stringify(connection), QUEUE: `rehearsal-${title}-${file}` };
      const { stdout } = await run(program, [...args, join(project, file)], { cwd: project, env, timeout: LIMIT_MS });
      if (stdout.trim() !== WANTED) throw new Error(`Error: ${file}, which imports ${name}, said ${stdout.trim()}`);
    }
    return { row: [title, library, 'installed, jobs ran'], state: 'ran' };
  } catch (error) {
    return { row: [title, library, `FAILED: ${firstLine(error as Error)}`], state: 'failed' };
  }
}

/** One project for each C library, as a package manager chooses the addon by it. */
async function install(library: Runtime['library'], registry: Registry, folder: string): Promise<string> {
  const project = join(folder, `project-${library}`);
  if (existsSync(project)) return project;
  mkdirSync(project);
  const dependencies = { chasquimq: version, bullmq: 'npm:@chasquimq/as-bullmq@^6.7.0' };
  writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, dependencies }));
  for (const [file, name] of Object.entries(USES)) {
    const text = readFileSync(join(PROGRAMS, 'installed', file), 'utf8').replaceAll('LIBRARY', name);
    writeFileSync(join(project, file), text);
  }
  cpSync(join(PROGRAMS, 'quick-start.mjs'), join(project, 'quick-start.mjs'));
  const { PATH } = process.env;
  const settings = {
    npm_config_registry: registry.url,
    npm_config_audit: 'false',
    npm_config_update_notifier: 'false',
  };
  const chosen = library === 'its own' ? [] : [`--libc=${library}`];
  await run('npm', ['install', ...chosen], { cwd: project, env: { PATH, HOME: folder, ...settings } });
  return project;
}
