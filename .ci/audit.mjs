// What we pass on may be passed on, and nobody has warned of it: `npm run audit`. Licenses are read from the packages themselves.
// Advisories lie in databases on the net: one that cannot be reached is said aloud, and fails a run with `--strict` alone.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { checkLicenses } from './licenses.mjs';
import { setup } from './setup.mjs';
import { isEntry, main, root, runAll, say, Stop } from './step.mjs';

const WAIT_MS = 60_000;

export async function audit(args = []) {
  const strange = args.find((arg) => arg !== '--strict');
  if (strange) throw new Stop(`${strange}: usage: npm run audit [-- --strict]`, 2);
  const unreachable = (what, why) => {
    const line = `NOT CHECKED: ${what}: ${why}`;
    if (args.includes('--strict')) throw new Stop(line);
    say(`  ${line}`);
  };
  await setup();
  await runAll([
    async () => checkLicenses([thisPlatform()]),
    async () => checkPackages(unreachable),
    async () => checkCrates(unreachable),
  ]);
}

/** The folder of npm/ for the machine that this runs on; elsewhere one that lints do for all. */
function thisPlatform() {
  const found = readdirSync(join(root, 'npm')).find((name) => name.startsWith(`${process.platform}-${process.arch}`));
  return found ?? 'linux-x64-gnu';
}

function checkPackages(unreachable) {
  const { vulnerabilities, message, error } = askFor('npm', ['audit', '--omit=dev', '--json']);
  if (!vulnerabilities) return unreachable('advisories of npm packages', message ?? error?.summary ?? 'no answer');
  tell(
    'npm packages',
    Object.values(vulnerabilities).map(({ name, severity, range }) => `${name} ${range} (${severity})`),
  );
}

function checkCrates(unreachable) {
  const { vulnerabilities, message } = askFor('cargo', ['audit', '--json']);
  if (!vulnerabilities)
    return unreachable('advisories of crates', message ?? 'cargo-audit is not installed, or its database not there');
  const warned = vulnerabilities.list.map(
    ({ advisory, package: { name, version } }) => `${name} ${version} (${advisory.id}: ${advisory.title})`,
  );
  tell('crates', warned);
}

function tell(what, warned) {
  if (warned.length > 0) throw new Stop([`advisories of ${what}:`, ...warned.map((each) => `  ${each}`)].join('\n'));
  say(`  advisories: none of the ${what} that are passed on`);
}

/** What a command prints as JSON, however it ends. */
function askFor(command, args) {
  const { stdout, error } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    timeout: WAIT_MS,
    shell: process.platform === 'win32',
  });
  if (error) return { message: error.message };
  try {
    return JSON.parse(stdout);
  } catch {
    return {};
  }
}

if (isEntry(import.meta.url)) await main(audit);
