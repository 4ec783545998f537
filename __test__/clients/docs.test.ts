// Each block of code in the README and in docs/ compiles, and does what it is there to show (support/doc-uses.ts). A reader's own
// `queue`, `worker` and the like, and imports that a page has shown before, stand before it here.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { blocksOf, pages, textOf } from '../support/doc-blocks.js';
import type { Block } from '../support/doc-blocks.js';
import { atTestServer, surround } from '../support/doc-surroundings.js';
import { uses } from '../support/doc-uses.js';
import type { Use } from '../support/doc-uses.js';
import { Program } from '../support/program.js';
import { PACKAGES, ROOT } from '../support/registry.js';
import { useStage } from '../support/stage.js';

const LONG_MS = 300_000;
const CODE = ['ts', 'js', 'diff'];

interface Example extends Block {
  name: string;
  /** From the folder of all examples. */
  file: string;
  use: Use;
}

const examples = pages().flatMap((page) =>
  blocksOf(page)
    .filter(({ language }) => CODE.includes(language))
    .map((block, i): Example => {
      const extension = block.language === 'js' ? 'js' : 'ts';
      const own = uses[page]?.filter((each) => block.text.includes(each.with)) ?? [];
      return {
        ...block,
        name: `${page}, line ${block.line}`,
        file: `${page.replaceAll(/\W+/g, '-')}/${block.file ?? `example-${i + 1}.${extension}`}`,
        use: own[0] ?? { with: '' },
      };
    }),
);

const stage = useStage(chasquimq);
let folder = '';
beforeAll(() => {
  mkdirSync(join(ROOT, 'target'), { recursive: true });
  // within the package, whose own name then leads to what was built
  folder = mkdtempSync(join(ROOT, 'target/docs-'));
  symlinkSync(PACKAGES, join(folder, 'node_modules'), 'junction');
  for (const { file, text, language, use } of examples) {
    const shown = language === 'diff' ? text.replaceAll(/^-.*\n/gm, '').replaceAll(/^[+ ]/gm, '') : text;
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), use.isPart ? shown : surround(shown, use));
  }
  mkdirSync(join(folder, 'prose'));
  writeFileSync(join(folder, 'prose/members.ts'), namedMembers());
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('no use is without its block', () => {
  const idle = Object.entries(uses).flatMap(([page, list]) =>
    list.filter((use) => !examples.some((example) => example.use === use)).map((use) => `${page}: ${use.with}`),
  );
  expect(idle).toEqual([]);
});

it.each(['ts', 'js'])('every block compiles (%s)', { timeout: LONG_MS }, async (language) => {
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2022', types: ['node'], noEmit: true, skipLibCheck: true },
    ...(language === 'ts' ? { strict: true } : { strict: false, allowJs: true, checkJs: true }),
  };
  const include = language === 'ts' ? ['*/*.ts'] : ['*/*.js', '*/*.mjs'];
  const config = join(folder, `tsconfig.${language}.json`);
  writeFileSync(config, JSON.stringify({ compilerOptions, include }));
  const tsc = promisify(execFile)(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', config]);
  const { stdout } = await tsc.catch((error: { stdout: string }) => error);
  expect(stdout).toBe('');
});

it.each(examples.filter(({ use }) => !use.isPart))('$name: it runs', { timeout: LONG_MS }, async ({ file, use }) => {
  const { transform } = await import('esbuild');
  const text = atTestServer(readFileSync(join(folder, file), 'utf8'));
  const { code } = await transform(withOwnNames(use.but?.(text) ?? text), { loader: 'ts', format: 'esm' });
  const path = join(folder, `${file}.run.mjs`);
  writeFileSync(path, code);
  const program = stage.keep(Program.start(relative(join(ROOT, '__test__/life/programs'), path)));
  expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
  if (use.says) {
    expect(program.lines.map((line, i) => (isText(use.says?.[i]) || use.says?.[i]?.test(line) ? line : ''))).toEqual(
      use.says.map((wanted, i) => (isText(wanted) ? wanted : program.lines[i])),
    );
  }
});

/** A program that looks at each member that the prose names (`queue.count()`): it compiles when they are there. */
function namedMembers(): string {
  const classes: Record<string, string> = { queue: 'Queue', worker: 'Worker', job: 'Job', flows: 'FlowProducer' };
  const named = pages()
    // of the calls that BullMQ 6 has dropped
    .filter((page) => page !== 'docs/v5.md')
    .flatMap((page) => [
      ...textOf(page)
        .replaceAll(/^```[^]*?^```$/gm, '')
        .matchAll(/`([^`\n]+)`/g),
    ])
    .flatMap(([, code = '']) => [
      ...code.matchAll(/(?<![.\w/])(queue|worker|job|flows)\.(?!m?[jt]s\b|rs\b)([a-z]\w+)/g),
    ])
    .map(([, owner = '', member = '']) => `({} as ${classes[owner]}).${member};`);
  const imports = `import type { ${Object.values(classes).join(', ')} } from 'chasquimq';`;
  return [imports, ...new Set(named)].join('\n');
}

const isText = (value: unknown): value is string => typeof value === 'string';

/** Queues get names of their own for each test, by which their keys are removed after it. */
function withOwnNames(text: string): string {
  const names = /(new \w*(?:Queue|Worker|QueueEvents|QueueEventsProducer)(?:<[^>(]*>)?\(\s*|queueName: )'([\w-]+)'/g;
  return text.replaceAll(names, `$1'${stage.queueName}-$2'`);
}
