// What a program is told when there is no addon for it: where it runs, why, and what there is.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { BUILDS } from '../../src/native/no-addon.js';
import { Program } from '../support/program.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** The addon of this machine: `chasquimq.<build>.node`. */
const ADDON = readdirSync(ROOT).find((name) => name.endsWith('.node')) ?? '';
const BUILD = ADDON.split('.')[1] ?? '';
const LIST = `There are builds for ${BUILDS.join(', ')}.`;

describe('without an addon', () => {
  let folder = '';

  /** The built package, without its addon. */
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
    for (const part of ['dist', 'index.cjs', 'package.json']) {
      cpSync(join(ROOT, part), join(folder, part), { recursive: true });
    }
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'junction');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function toldBy(entry: string, nodeOptions: string[] = [], before = ''): Promise<string[]> {
    const text = `${before}
      import(${JSON.stringify(join(folder, 'dist', entry, 'index.js'))}).then(
        () => console.log('loaded'),
        (error) => console.log([error.code, error.cause instanceof Error, ...error.message.split('\\n')].join('\\n')),
      );`;
    const program = Program.startText(text, { nodeOptions, kind: 'commonjs' });
    await program.end();
    return program.lines;
  }

  it.each(['esm', 'cjs'])('the package that is missing is named: %s', async (entry) => {
    const [code, hasCause, where, why, list, ...rest] = await toldBy(entry);
    expect([code, hasCause, list, rest]).toEqual(['ERR_NO_ADDON', 'true', LIST, []]);
    expect(where).toContain(`cannot load its native addon on ${process.platform}-${process.arch}`);
    expect(where).toContain(`Node ${process.version}.`);
    expect(why).toMatch(new RegExp(`^The package @chasquimq/addon-${BUILD} is not installed\\.`));
  });

  it('what the system says of the file is repeated', async () => {
    writeFileSync(join(folder, ADDON), 'no addon');
    const [, , , why] = await toldBy('cjs');
    expect(why).toContain(ADDON);
  });

  it('a C library that is too old is named as such', async () => {
    const message = "/lib/libc.so.6: version `GLIBC_2.39' not found";
    writeFileSync(
      join(folder, 'index.cjs'),
      `throw new Error('none', { cause: new Error(${JSON.stringify(message)}) });`,
    );
    const [, , , why, remedy] = await toldBy('cjs');
    expect([why, remedy]).toEqual([message, expect.stringContaining('C library')]);
  });

  it('the same where the errors are of another realm, as under Jest', async () => {
    const message = "/lib/libc.so.6: version `GLIBC_2.39' not found";
    const text = `const cause = new Error(${JSON.stringify(message)}); throw new Error('none', { cause });`;
    writeFileSync(join(folder, 'index.cjs'), `require('node:vm').runInNewContext(${JSON.stringify(text)});`);
    const [, , , why, remedy] = await toldBy('cjs');
    expect([why, remedy]).toEqual([message, expect.stringContaining('C library')]);
  });

  it('Node without addons is told the flag', async () => {
    cpSync(join(ROOT, ADDON), join(folder, ADDON));
    expect(await toldBy('cjs')).toEqual(['loaded']);
    const [, , , why, remedy] = await toldBy('cjs', ['--no-addons']);
    expect(why).toMatch(/disabled/);
    expect(remedy).toMatch(/--allow-addons/);
  });

  it('a process that may not load addons is told the flag', async () => {
    cpSync(join(ROOT, ADDON), join(folder, ADDON));
    const flag = ['--permission', '--experimental-permission'].find((name) =>
      process.allowedNodeEnvironmentFlags.has(name),
    );
    const permission = [flag ?? '', '--allow-fs-read=*'];
    const [, , , why, remedy] = await toldBy('cjs', permission);
    expect(why).toMatch(/disabled/);
    expect(remedy).toMatch(/--allow-addons/);
    expect(await toldBy('cjs', [...permission, '--allow-addons'])).toEqual(['loaded']);
  });

  it('a platform without a build is told so', async () => {
    const elsewhere = `Object.defineProperty(process, 'arch', { value: 'sparc' });`;
    const [, , where, ...why] = await toldBy('cjs', [], elsewhere);
    expect(where).toContain('-sparc');
    expect(why.join('\n')).toMatch(/Unsupported architecture|no build for this platform/);
    expect(why.at(-1)).toBe(LIST);
  });
});

it('the list of builds is that of the package', () => {
  const { napi } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { napi: { targets: unknown[] } };
  expect(readdirSync(join(ROOT, 'npm')).sort()).toEqual([...BUILDS].sort());
  expect(napi.targets).toHaveLength(BUILDS.length);
});
