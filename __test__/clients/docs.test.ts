// Each block of code in the README compiles, and does what it is there to show. Most go on from the first one: what they need
// of that, and of a reader's own program, stands before them here.
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { ROOT } from '../support/registry.js';
import { useStage } from '../support/stage.js';

const LONG_MS = 120_000;
/** Queues of the README, which get names of their own for each test. */
const QUEUES = /'(mail|images|albums)'/g;
const CONNECTION = "const connection = { host: '127.0.0.1', port: 6379 };";
const HERE = "const connection = JSON.parse(process.env.CONNECTION ?? '');";

const QUEUE = `import { Queue, Worker } from 'chasquimq';\n${CONNECTION}\nconst queue = new Queue('mail', { connection });`;
const CLOSE = 'await queue.close();';

interface Use {
  /** Words by which the block is known. */
  with: string;
  before?: string;
  after?: string;
  /** Puts other figures into the block. */
  but?: (text: string) => string;
  says: string[];
}

const uses: Record<string, Use> = {
  'the import to swap': { with: "+import { Queue, QueueEvents, Worker } from 'chasquimq'", says: [] },
  'the example, whole': { with: "from 'chasquimq';\n\nconst connection", says: ['sent to ana@example.com'] },
  'job schedulers': {
    with: 'upsertJobScheduler',
    before: QUEUE,
    after: `const left = await queue.getJobSchedulers(); console.log(left.map(({ key }) => key).join()); ${CLOSE}`,
    says: ['report'],
  },
  'failed jobs': { with: 'countFailedJobs', before: QUEUE, after: CLOSE, says: [] },
  flows: {
    with: 'new FlowProducer',
    before: CONNECTION,
    after: `
      new Worker('images', async (image) => image.data.file, { connection });
      const { QueueEvents } = await import('chasquimq');
      const events = new QueueEvents('albums', { connection, lastEventId: '0-0' });
      const files = await job.waitUntilFinished(events);
      console.log(files.sort().join());
      process.exit();`,
    says: ['a.png,b.png'],
  },
  'a maximum length': {
    with: 'ERR_QUEUE_FULL',
    before: `${QUEUE}\nconst image = 'a.png';\nconst response = { status: (code) => ({ end: () => console.log(code) }) };`,
    after: CLOSE,
    but: (text) =>
      text.replace('100_000', '1').replace('await queue.add', "await queue.add('first');\nawait queue.add"),
    says: ['503'],
  },
  'SIGTERM with a time limit': {
    with: 'SIGTERM',
    before: `${QUEUE}\nconst mail = (text) => new Promise(() => console.log(text));`,
    after: `
      process.once('exit', (code) => console.log('exit', code));
      worker.once('active', () => process.kill(process.pid, 'SIGTERM'));
      await queue.add('job', 'mailing');`,
    but: (text) => text.replace('8000', '100'),
    says: ['mailing', 'exit 0'],
  },
};

const blocks = [...readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(/^```(ts|js|diff)\n([^]*?)^```$/gm)].map(
  ([, language, text]) => ({ language, text }),
);
const named = Object.entries(uses).map(([name, use]) => {
  const [block] = blocks.filter(({ text }) => text.includes(use.with));
  return { name, use, file: `${name.replaceAll(/\W+/g, '-')}.${block?.language === 'js' ? 'js' : 'ts'}`, block };
});

const stage = useStage(chasquimq);
let folder = '';
beforeAll(() => {
  mkdirSync(join(ROOT, 'target'), { recursive: true });
  // within the package, whose own name then leads to what was built
  folder = mkdtempSync(join(ROOT, 'target/readme-'));
  for (const { use, file, block } of named) {
    const shown = block.language === 'diff' ? block.text.replaceAll(/^-.*\n|^\+/gm, '') : block.text;
    const text = [use.before ?? '', shown, use.after ?? ''].join('\n');
    writeFileSync(join(folder, file), text);
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('has a use for every block', () => {
  expect(blocks.filter((block) => !named.some((each) => each.block === block))).toEqual([]);
  expect(named.filter(({ block }) => block === undefined)).toEqual([]);
});

it.each(['ts', 'js'])('every block compiles (%s)', { timeout: LONG_MS }, async (language) => {
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'es2022', types: ['node'], noEmit: true, skipLibCheck: true },
    ...(language === 'ts' ? { strict: true } : { strict: false, allowJs: true, checkJs: true }),
  };
  const config = join(folder, `tsconfig.${language}.json`);
  writeFileSync(config, JSON.stringify({ compilerOptions, include: [`*.${language}`] }));
  const tsc = promisify(execFile)(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', config]);
  const { stdout } = await tsc.catch((error: { stdout: string }) => error);
  expect(stdout).toBe('');
});

it.each(named)('$name: it runs', { timeout: LONG_MS }, async ({ use, file }) => {
  const { transform } = await import('esbuild');
  const text = readFileSync(join(folder, file), 'utf8').replace(CONNECTION, HERE);
  const own = (use.but?.(text) ?? text).replaceAll(QUEUES, `'${stage.queueName}-$1'`);
  const { code } = await transform(own, { loader: 'ts', format: 'esm' });
  const path = join(folder, `${file}.mjs`);
  writeFileSync(path, code);
  const program = stage.keep(Program.startText(`await import('${pathToFileURL(path).href}');`));
  expect(await program.end(), program.errors).toEqual({ code: 0, signal: null });
  expect(program.lines).toEqual(use.says);
});
