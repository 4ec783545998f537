// Pins that what is written names what is there: links, commands, error codes, options.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CLUSTER_OPTIONS, SENTINEL_OPTIONS } from '../../src/connection/discovery.js';
import { ErrorCode } from '../../src/errors/error-code.js';
import { blocksOf, pages, textOf } from '../support/doc-blocks.js';
import { ROOT } from '../support/registry.js';

const WRITTEN = [
  ...pages(),
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'benchmarks/README.md',
  'crates/chasquimq/README.md',
  'crates/chasquimq-typed/README.md',
  'examples/README.md',
  '.github/SECURITY.md',
];
const LANGUAGES = ['ts', 'js', 'diff', 'sh', 'json', 'text', 'rust', 'lua', 'yaml'];

describe.each(WRITTEN)('%s', (page) => {
  const text = textOf(page);

  it('links to files and headings that are there', () => {
    const links = [...withoutCode(text).matchAll(/\]\((?!https?:)([^)\s]*)\)/g)].map(([, link = '']) => link);
    expect(links.filter((link) => !leadsSomewhere(page, link))).toEqual([]);
  });

  it('has blocks of known languages, with JSON that can be read and scripts that there are', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> };
    for (const { language, text: code, line } of blocksOf(page)) {
      expect([line, LANGUAGES]).toEqual([line, expect.arrayContaining([language])]);
      if (language === 'json') JSON.parse(code);
    }
    const asked = [...text.matchAll(/npm run ([\w:-]+)/g)].map(([, name = '']) => name);
    expect(asked.filter((name) => !(name in scripts))).toEqual([]);
  });
});

const withoutCode = (text: string): string => text.replaceAll(/^```[^]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, '``');

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', heading] = link.split('#');
  // those of the front page are of the site
  const target = path === '' ? page : path.startsWith('/') ? `docs${path}.md` : join(dirname(page), path);
  if (!existsSync(join(ROOT, target))) return false;
  if (heading === undefined || !target.endsWith('.md')) return true;
  return anchorsOf(textOf(target)).has(heading);
}

/** As GitHub makes them of headings, and those that are written as such. */
function anchorsOf(text: string): Set<string> {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .replaceAll(/<[^>]*>/g, '')
      .trim()
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
  return new Set([...headings, ...[...text.matchAll(/ id="([^"]+)"/g)].map(([, id = '']) => id)]);
}

describe('troubleshooting', () => {
  const page = textOf('docs/troubleshooting.md');

  it.each(Object.entries(ErrorCode).filter(([, code]) => typeof code === 'number'))(
    'has a row for %s (%d)',
    (name, code) => {
      expect(page).toMatch(new RegExp(`^\\| ${code} \\| \`${name}\` \\|`, 'm'));
    },
  );

  it.each(ownCodes())('has a row for %s', (code) => {
    expect(page).toMatch(new RegExp(`^\\|[^|]*\`${code}\``, 'm'));
  });

  it.each(engineMessages())('has the message of the engine: %s', (message) => {
    expect(page).toContain(message);
  });
});

/** The codes that are texts, in all that ships. */
function ownCodes(): string[] {
  const ours = /['"](ERR_[A-Z_]+)['"]|'(CHASQUIMQ_[A-Z_]+)'/g;
  const ofNode = /Some\("(E[A-Z_]+)"\)|"(E(?:AI|N|H|C|T)[A-Z_]+)"/g;
  const found = ['src', 'crates/chasquimq/src', 'crates/chasquimq-migrate/src', 'crates/chasquimq-node/src'].flatMap(
    (folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        // the command line tells no codes, and reads Node's
        .filter((file) => /\.(ts|rs)$/.test(file) && !file.startsWith('tools/cli'))
        .flatMap((file) => {
          const [text = ''] = readFileSync(join(ROOT, folder, file), 'utf8').split('#[cfg(test)]');
          const nodes = file.endsWith('redis/failure.rs') ? [...text.matchAll(ofNode)] : [];
          return [...text.matchAll(ours), ...nodes].map(([, code, other]) => code ?? other ?? '');
        }),
  );
  return [...new Set(found)].sort();
}

/** What the errors of the engine begin with, behind a name; those that only hand on another's words say nothing of their own. */
function engineMessages(): string[] {
  const text = textOf('crates/chasquimq/src/error.rs');
  return [...text.matchAll(/#\[error\(\s*"([^"]*)"\s*\)\]/g)]
    .flatMap(([, message = '']) => message.split(/\{[^}]*\}/).find((part) => part.trim().length > 6) ?? [])
    .map((part) => part.trim().split(/[.:]/)[0]?.slice(0, 35) ?? '');
}

describe('options', () => {
  const page = textOf('docs/connections.md');

  it.each(knownConnectionOptions())('of a connection: %s is told of', (option) => {
    expect(page).toContain(`\`${option}\``);
  });

  it.each(optionsWithoutEffect())('that have no effect: %s is told of', (option) => {
    expect(page).toMatch(new RegExp(`^\\|.*\`(\\w+\\.)?${option}\`.*\\|.*\\|$`, 'm'));
  });
});

function knownConnectionOptions(): string[] {
  const text = textOf('src/connection/known-options.ts');
  const lists = [/MAPPED = \[([^]*?)\];/, /NO_EFFECT = \[([^]*?)\];/].flatMap((list) => list.exec(text)?.[1] ?? []);
  const [, refused = ''] = /REFUSED[^=]*= \{([^]*?)\};/.exec(text) ?? [];
  return [
    ...lists.flatMap((list) => [...list.matchAll(/'(\w+)'/g)].map(([, name = '']) => name)),
    ...[...refused.matchAll(/^ {2}(\w+):/gm)].map(([, name = '']) => name),
    ...SENTINEL_OPTIONS,
    ...CLUSTER_OPTIONS,
  ];
}

/** Those whose own comment says so. */
function optionsWithoutEffect(): string[] {
  return readdirSync(join(ROOT, 'src/options')).flatMap((file) =>
    [...textOf(`src/options/${file}`).matchAll(/\/\*\*(?:(?!\*\/)[^])*?Has no effect[^]*?\*\/\s*(\w+)\??:/g)].map(
      ([, name = '']) => name,
    ),
  );
}
