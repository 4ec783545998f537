// Publishes the packages of a release: those of the platforms, then `chasquimq`, last the one that stands in for `bullmq`, so that
// whoever installs one finds what it depends on. What the registry has already is looked at and passed over: a run that stopped
// halfway is started again. It runs beside a token, so it needs nothing but Node and npm, and builds nothing.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { LIST } from './pack.mjs';
import { run, say, Stop } from './step.mjs';

/** The first npm that takes a workflow's word for who it is. */
const TRUSTED_SINCE = [11, 5, 1];

/** Step of a release: `folder` is what `pack` wrote. */
export async function publishRelease([folder]) {
  if (!folder || !existsSync(join(folder, LIST)))
    throw new Stop('usage: node .ci/release.mjs publish <folder of pack>');
  const packed = JSON.parse(readFileSync(join(folder, LIST), 'utf8')).map((each) => ({
    ...each,
    file: resolve(folder, each.filename),
  }));
  for (const each of packed) checkFile(each);
  const isWorkflow = Boolean(process.env.ACTIONS_ID_TOKEN_REQUEST_URL);
  if (isWorkflow) await checkNpm();
  await withLogin(async (env) => {
    // all are looked at before the first is published: a refusal leaves nothing half done
    const there = await Promise.all(packed.map((each) => isThere(each, env)));
    for (const [i, each] of packed.entries()) {
      if (there[i]) say(`  ${each.name}@${each.version}: already there, going on`);
      else await publish(each, env, isWorkflow ? ['--provenance'] : []);
    }
  });
}

function checkFile({ file, filename, integrity }) {
  const found = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`;
  if (found !== integrity) throw new Stop(`${filename} is not the file that ${LIST} names: pack again`);
}

async function checkNpm() {
  const version = (await npm(['--version'], {})).stdout.trim().split('.').map(Number);
  const at = TRUSTED_SINCE.findIndex((part, i) => part !== version[i]);
  if (at >= 0 && version[at] < TRUSTED_SINCE[at]) {
    throw new Stop(`npm ${version.join('.')} knows no trusted publishing: that takes ${TRUSTED_SINCE.join('.')}`);
  }
}

/**
 * The first release is published with a token (docs/releasing.md), those after it by trust in the workflow. npm asks for that
 * trust first: a token that is still there does no harm. Without either it is the login of whoever runs this.
 */
async function withLogin(body) {
  if (!process.env.NPM_TOKEN) return body({});
  const registry = (await npm(['config', 'get', 'registry'], {})).stdout.trim();
  const folder = mkdtempSync(join(tmpdir(), 'chasquimq-publish-'));
  const file = join(folder, 'npmrc');
  // npm puts the variable's value in its place
  const login = `${registry.replace(/^https?:/, '').replace(/\/?$/, '/')}:_authToken=\${NPM_TOKEN}`;
  writeFileSync(file, `registry=${registry}\n${login}\n`);
  try {
    return await body({ npm_config_userconfig: file });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @throws Stop where the version is there with another content: that cannot be published, nor passed over */
async function isThere({ name, version, integrity }, env) {
  const { stdout, failed } = await npm(['view', `${name}@${version}`, 'dist.integrity', '--json'], env);
  const told = stdout.trim() === '' ? undefined : JSON.parse(stdout);
  if (failed && told?.error?.code !== 'E404') {
    throw new Stop(`the registry does not say whether it has ${name}@${version}: ${told?.error?.summary ?? failed}`);
  }
  if (failed || told === undefined) return false;
  if (told === integrity) return true;
  throw new Stop(
    [
      `the registry has ${name}@${version}, and it is not this one:`,
      ...[`  there ${told}`, `  here  ${integrity}`],
      'Publish the tarballs of the run that began this release, or release under a new version.',
    ].join('\n'),
  );
}

async function publish(packed, env, more) {
  const { name, version, file } = packed;
  const tag = version.includes('-') ? ['--tag', 'next'] : [];
  try {
    await run(`publish ${name}@${version}`, 'npm', ['publish', file, '--access', 'public', ...tag, ...more], { env });
  } catch (error) {
    // the answer may have been lost, not the package
    if (!(await isThere(packed, env))) throw error;
    say(`  ${name}@${version}: it is there`);
  }
}

async function npm(args, env) {
  const windows = process.platform === 'win32';
  const ran = promisify(execFile)('npm', args, { env: { ...process.env, ...env }, shell: windows });
  return ran.catch(({ stdout, message }) => ({ stdout: stdout ?? '', failed: message }));
}
