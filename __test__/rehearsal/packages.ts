/** What each package has that was published, and what its statement of provenance will say. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { REPOSITORY, ROOT, type Manifest, type Packed, type Registry } from '../support/registry.js';

const WORKFLOW = '.github/workflows/release.yml';

/** A row for each package. `wrong` counts those that lack something. */
export async function lookAtPackages(
  registry: Registry,
  packed: readonly Packed[],
  standIns: readonly string[],
): Promise<{ rows: string[][]; wrong: number }> {
  const signs = mayTheWorkflowSign();
  let wrong = 0;
  const rows = [];
  for (const each of packed) {
    const { name, version, size, unpackedSize, files } = each;
    const hasLicense = files.includes('LICENSE');
    const isAddon = name.includes('/addon-');
    const hasNotices = files.includes('THIRD-PARTY-NOTICES.md');
    const manifest = registry.manifest(name, version);
    const statement = provenance(manifest, await fileOf(registry, name));
    const faults = [
      ...(hasLicense ? [] : ['no license']),
      ...(isAddon && !hasNotices ? ['no notices'] : []),
      ...faultsOf(statement, each, manifest),
      ...(signs ? [] : [`${WORKFLOW} may not sign`]),
    ];
    if (faults.length > 0) wrong++;
    const { subject } = statement;
    const states = `${subject.name} sha512:${subject.digest.sha512.slice(0, 12)}...`;
    const notices = hasNotices ? 'yes' : isAddon ? 'NO' : 'nothing linked';
    const note = faults.length > 0 ? `WRONG: ${faults.join(', ')}` : standIns.includes(name) ? 'stand-in' : '';
    rows.push([`${name}@${version}`, kib(size), kib(unpackedSize), hasLicense ? 'yes' : 'NO', notices, states, note]);
  }
  return { rows, wrong };
}

const kib = (bytes: number): string => `${Math.ceil(bytes / 1024)} KiB`;

/** What those who install get. */
async function fileOf(registry: Registry, name: string): Promise<Buffer> {
  const told = (await (await fetch(`${registry.url}${encodeURIComponent(name)}`)).json()) as {
    'dist-tags': { latest: string };
    versions: Record<string, { dist: { tarball: string } }>;
  };
  const tarball = told.versions[told['dist-tags'].latest]?.dist.tarball ?? '';
  return Buffer.from(await (await fetch(tarball)).arrayBuffer());
}

interface Statement {
  subject: { name: string; digest: { sha512: string } };
  workflow: { ref: string; repository: string; path: string };
}

/** The parts of npm's statement that are known before it is signed: of which file it speaks, and who made that. */
function provenance({ name, version }: Manifest, file: Buffer): Statement {
  const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = REPOSITORY;
  return {
    subject: {
      name: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      digest: { sha512: createHash('sha512').update(file).digest('hex') },
    },
    workflow: {
      ref: `refs/tags/v${version}`,
      repository: `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`,
      path: WORKFLOW,
    },
  };
}

/** npm refuses a statement that speaks of another file, or of a repository that the manifest does not name. */
function faultsOf({ subject, workflow }: Statement, { integrity }: Packed, manifest: Manifest): string[] {
  const sum = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
  const named = manifest.repository?.url.replaceAll(/^git\+|\.git$/g, '');
  return [
    ...(subject.digest.sha512 === sum ? [] : ['the registry has another file']),
    ...(named === workflow.repository ? [] : [`names the repository ${named}`]),
  ];
}

/** The job that publishes asks for the identity that is signed with, by a step of this package. */
function mayTheWorkflowSign(): boolean {
  const text = readFileSync(join(ROOT, WORKFLOW), 'utf8');
  const [, job = ''] = /^ {2}publish:\n([^]*?)(?=^ {2}\w)/m.exec(text) ?? [];
  return job.includes('id-token: write') && job.includes('node .ci/release.mjs publish');
}
