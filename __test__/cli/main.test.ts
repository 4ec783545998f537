// The frame of the command line: what every command does with help, with what it does not understand, and with a server that
// it cannot use. It runs as its users run it: the built program, as a process.
import { execFile } from 'node:child_process';
import { accessSync, constants, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../src/tools/cli/commands.js';
import { nearest } from '../../src/tools/cli/nearest.js';
import { BIN, cli } from '../support/cli.js';
import { Program } from '../support/program.js';
import { closedPort, server } from '../support/redis.js';
import { ROOT, version } from '../support/registry.js';
import { useOwnServer } from '../support/use-own-server.js';

const names = COMMANDS.map(({ name }) => name);
const folder = mkdtempSync(join(tmpdir(), 'chasquimq-cli-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('help', () => {
  it('lists every command, on stdout when asked for', async () => {
    const { code, stdout, stderr } = await cli(['--help']);
    expect([code, stderr]).toEqual([0, '']);
    for (const { name, summary } of COMMANDS) expect(stdout).toMatch(new RegExp(`\\n  ${name} +${summary}\\n`));
    expect(await cli(['help'])).toEqual({ code, stdout, stderr });
    expect(await cli([])).toEqual({ code: 2, stdout: '', stderr: stdout });
  });

  it.each(names)('%s has examples', async (name) => {
    const { code, stdout, stderr } = await cli([name, '--help'], { env: { REDIS_URL: 'nonsense://' } });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`Usage: chasquimq ${name}`);
    expect(stdout).toMatch(/\nExamples:\n {2}chasquimq /);
    expect(stdout.split('\n').filter((line) => line.length > 120)).toEqual([]);
    expect((await cli(['help', name])).stdout).toBe(stdout);
  });

  it('tells the version', async () => {
    expect(await cli(['--version'])).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });
});

describe('what is not understood', () => {
  it.each([
    [['inspct'], 'There is no command inspct. Did you mean inspect?'],
    [['frobnicate'], 'There is no command frobnicate.'],
    [['--verison'], 'There is no option --verison. Did you mean --version?'],
    [['help', 'wacth'], 'There is no command wacth. Did you mean watch?'],
    [['inspect', '--jsn'], 'There is no option --jsn. Did you mean --json?'],
    [['inspect', '--url'], "Option '-u, --url <value>' argument missing."],
    [['inspect', '--json=yes'], "Option '--json' does not take an argument."],
    [['inspect', '--url', ''], '--url is empty.'],
    [['inspect', '--sample', 'soon'], '--sample must be a time such as 30s, 5m, 2h or 7d, not "soon".'],
    [['inspect', 'a:b'], '"a:b" is no name of a queue: it has no colon.'],
    [['watch', '--interval', '1ms'], '--interval must be at least 100ms.'],
    [['watch', '--ticks', '0'], '--ticks must be a whole number of at least 1, not "0".'],
    [['failed'], 'Name a queue: chasquimq failed <queue>.'],
    [['failed', 'mail', 'reply'], 'There is no action reply. Did you mean replay?'],
    [['failed', 'mail', 'show'], 'show wants ids of jobs.'],
    [['failed', 'mail', 'remove', '--yes'], 'remove wants ids, something to look for, or --all.'],
    [
      ['failed', 'mail', 'remove', '--all', '--name', 'x', '--yes'],
      '--all means every failed job: leave out the rest, or --all.',
    ],
    [
      ['failed', 'mail', 'replay', '7', '--name', 'x', '--yes'],
      'Ids name jobs: say them, or what to look for, and not both.',
    ],
    [['failed', 'mail', 'replay', '7'], 'replay changes jobs, and there is nobody to ask: say --yes.'],
    [['doctor', 'one', 'two'], '"two" is one argument too many.'],
    [['doctor', '--no-server', '--url', 'redis://x'], '--no-server and --url exclude each other.'],
    [['inspect', '--cluster', '--sentinel', 'main'], '--cluster and --sentinel exclude each other.'],
    [['inspect', '--url', 'one,two'], '--url names several servers: say --cluster or --sentinel <name>.'],
    [['inspect', '--url', 'redis://x/one'], '--url names a database that is no number.'],
    [['inspect', '--url', 'http://x'], '--url begins with http://, and should with redis://, rediss:// or unix://.'],
  ])('%j', async (args, message) => {
    const { code, stdout, stderr } = await cli(args);
    const [line, hint] = stderr.split('\n');
    expect([code, stdout]).toEqual([2, '']);
    expect(line).toMatch(/^chasquimq( \w+)?: /);
    expect(line?.replace(/^chasquimq( \w+)?: /, '')).toBe(message);
    expect(hint).toMatch(/^See chasquimq( \w+)? --help$/);
  });

  it('repeats no URL that cannot be read: it may hold a password', async () => {
    const { code, stderr } = await cli(['inspect', '--url', 'redis://me:hunter2@[oops']);
    expect([code, stderr.split('\n')[0]]).toEqual([
      2,
      'chasquimq inspect: --url is not a URL such as redis://127.0.0.1:6379.',
    ]);
    const percent = await cli(['inspect', '--url', 'redis://me:hunter%2@x']);
    expect([percent.code, percent.stderr.split('\n')[0]]).toEqual([
      2,
      'chasquimq inspect: --url has a % that begins no code: write %25 for it.',
    ]);
    const byEnvironment = await cli(['inspect'], { env: { REDIS_URL: 'hunter2://me' } });
    expect([byEnvironment.code, byEnvironment.stderr.includes('hunter2@')]).toEqual([2, false]);
  });

  it('a near name is one that differs in a letter or two', () => {
    expect(nearest('faield', names)).toBe('failed');
    expect(nearest('doc', names)).toBe('doctor');
    expect(nearest('x', names)).toBeUndefined();
    expect(nearest('', names)).toBeUndefined();
  });
});

describe('a server that cannot be used', () => {
  const own = useOwnServer();
  beforeAll(() => own.redis.config('SET', 'requirepass', 'hunter2'));

  it.each(['inspect', 'watch', 'failed mail'])('%s: nobody is there', async (command) => {
    const port = await closedPort();
    const { code, stdout, stderr } = await cli([
      ...command.split(' '),
      '--url',
      `redis://me:hunter2@127.0.0.1:${port}`,
    ]);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      new RegExp(`^chasquimq: The server at 127\\.0\\.0\\.1:${port} cannot be used: .*ECONNREFUSED`),
    );
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).not.toContain('hunter2');
  });

  it('it wants a password', async () => {
    const { code, stderr } = await cli(['inspect', 'mail', '--url', `redis://127.0.0.1:${own.server.port}`]);
    expect([code, stderr.trim().split('\n').length]).toEqual([1, 1]);
    expect(stderr).toMatch(/NOAUTH.* It wants a password: put it into REDIS_PASSWORD\.\n$/);
  });

  it('it wants another password', async () => {
    const url = `redis://127.0.0.1:${own.server.port}`;
    const { code, stderr } = await cli(['inspect', '--url', url], { env: { REDIS_PASSWORD: 'hunter3' } });
    expect([code, stderr.trim().split('\n').length]).toEqual([1, 1]);
    expect(stderr).toMatch(/WRONGPASS.* Check the user and REDIS_PASSWORD\.\n$/);
    expect(stderr).not.toContain('hunter3');
  });

  it('the password of the environment and that of the URL open it', async () => {
    const { port } = own.server;
    const env = { REDIS_PASSWORD: 'hunter2' };
    const nothing = { code: 0, stdout: `There are no queues with the prefix bull at 127.0.0.1:${port}.\n`, stderr: '' };
    expect(await cli(['inspect', '--url', `redis://127.0.0.1:${port}`], { env })).toEqual(nothing);
    expect(await cli(['inspect', '--url', `redis://:hunter2@127.0.0.1:${port}`])).toEqual(nothing);
    expect(await cli(['inspect', '--url', own.server.path], { env })).toMatchObject({ code: 0, stderr: '' });
  });

  it('it speaks no TLS, or is no Redis', async () => {
    const url = `redis://:hunter2@127.0.0.1:${own.server.port}`;
    const tls = await cli(['inspect', 'mail', '--tls', '--url', url]);
    expect([tls.code, tls.stderr]).toEqual([1, expect.stringMatching(/^chasquimq: .* Does it speak TLS\?\n$/)]);
    const web = createServer((socket) => socket.resume().end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    await new Promise<void>((resolve) => web.listen(0, '127.0.0.1', resolve));
    const at = `redis://127.0.0.1:${(web.address() as AddressInfo).port}`;
    const other = await cli(['inspect', 'mail', '--url', at]);
    expect([other.code, other.stderr]).toEqual([
      1,
      expect.stringMatching(/^chasquimq: .* Is it Redis, and without TLS\?\n$/),
    ]);
    await new Promise((resolve) => web.close(resolve));
  });

  it('a queue that is not there is named, with the prefix and the server', async () => {
    const { code, stdout, stderr } = await cli(['failed', 'there-is-none', '--prefix', 'none']);
    expect([code, stdout]).toEqual([1, '']);
    const at = `${server.host}:${server.port}${server.db === 0 ? '' : `/${server.db}`}`;
    const [line] = stderr.split('\n');
    expect(line).toBe(
      `chasquimq: There is no queue there-is-none with the prefix none at ${at}. Queues that BullMQ has written are not seen.`,
    );
  });
});

describe('the package', () => {
  it('has the program, which can be executed', async () => {
    accessSync(BIN, constants.X_OK);
    expect(readFileSync(BIN, 'utf8').split('\n', 1)).toEqual(['#!/usr/bin/env node']);
    const run = promisify(execFile);
    const { stdout } = await run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder, ROOT]);
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
    const installed = join(folder, 'installed');
    mkdirSync(installed);
    await run('tar', ['-xzf', join(folder, filename), '-C', installed]);
    const { bin } = JSON.parse(readFileSync(join(installed, 'package/package.json'), 'utf8'));
    expect(bin).toEqual({ chasquimq: 'dist/cjs/tools/cli/bin.js' });
    const program = join(installed, 'package', bin.chasquimq);
    accessSync(program, constants.X_OK);
    // without its dependencies and without the addon
    expect((await run(program, ['--version'])).stdout).toBe(`${version}\n`);
    expect((await run(program, ['doctor', ROOT + '/src/tools/cli', '--no-server'])).stdout).toContain('ACL SETUSER');
    await expect(run(program, ['inspect'])).rejects.toMatchObject({ code: 1 });
  });

  it('does not load the command line where it is imported', async () => {
    const program = Program.startText(
      `require('chasquimq');
       const loaded = Object.keys(require.cache).filter((file) => /dist.cjs.(cli|doctor)/.test(file));
       console.log('loaded ' + JSON.stringify(loaded));`,
      { kind: 'commonjs' },
    );
    expect(await program.said('loaded')).toBe('[]');
    await program.end();
  });
});
