import { EventEmitter, once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import type { Queue } from '../../src/index.js';
import type { Io } from '../../src/tools/cli/command.js';
import { watch } from '../../src/tools/cli/commands/watch.js';
import { frame } from '../../src/tools/cli/screen.js';
import { chasquimq } from '../support/chasquimq.js';
import { cli, ended, startCli } from '../support/cli.js';
import { OwnServer } from '../support/own-server.js';
import { serverUrl } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

describe('watch, where nobody looks', () => {
  const stage = useStage(chasquimq);

  it('tells a line a queue and tick, and ends after as many as it is told', async () => {
    const [one, two] = [stage.queue({}, 'one'), stage.queue({}, 'two')];
    await one.add('job', 1);
    await two.pause();
    const { code, stdout, stderr } = await cli(['watch', one.name, two.name, '--interval', '100ms', '--ticks', '2']);
    expect([code, stderr]).toEqual([0, '']);
    const lines = stdout.trim().split('\n');
    expect(lines.map((line) => line.split(' ')[1])).toEqual([one.name, two.name, one.name, two.name]);
    expect(lines[0]).toMatch(
      /^\d{4}-\S+Z \S+ waiting=1 prioritized=0 delayed=0 .* done\/s=- .* oldest=\d+\w+ p95-wait=- p95-run=- .* state=no-workers$/,
    );
    expect(lines[3]).toMatch(/ waiting=0 .* done\/s=0 .* state=paused$/);
  });

  it('tells a JSON line a tick, with the rate since the last one', async () => {
    const queue = stage.queue();
    const worker = stage.worker(async () => 1, { metrics: { maxDataPoints: 5 } });
    await worker.waitUntilReady();
    await queue.add('first', 1);
    await until('it to be counted', async () => (await queue.getMetrics('completed')).meta.count === 1);
    const child = startCli(['watch', queue.name, '--json', '--interval', '200ms']);
    const lines = createInterface(child.stdout);
    await once(lines, 'line');
    await queue.addBulk(Array.from({ length: 20 }, (_, i) => ({ name: 'more', data: i })));
    const rates: number[] = [];
    for await (const line of lines) {
      const { at, queues } = JSON.parse(line);
      expect(at).toBeGreaterThan(0);
      expect(queues).toMatchObject([{ name: queue.name, rates: { source: 'metrics' } }]);
      rates.push(queues[0].rates.completedPerSecond);
      if (queues[0].counts.completed === 21) break;
    }
    expect(Math.max(...rates)).toBeGreaterThan(0);
    const end = ended(child);
    child.kill('SIGINT');
    expect(await end).toMatchObject({ code: 0, stderr: '' });
  });

  it('tells of one group of each queue', async () => {
    const queue = stage.queue() as unknown as Queue;
    await queue.addBulk(['a', 'b', 'a'].map((id) => ({ name: 'job', data: 1, opts: { group: { id: `of ${id}` } } })));
    const args = ['watch', queue.name, '--group', 'of a', '--interval', '100ms', '--ticks', '2'];
    const { code, stdout, stderr } = await cli(args);
    expect([code, stderr]).toEqual([0, '']);
    const line = / \S+ group="of a" waiting=2 active=0 oldest=\d+\w+ state=waiting$/;
    expect(stdout.trim().split('\n')).toEqual([expect.stringMatching(line), expect.stringMatching(line)]);
    const json = await cli([...args, '--json']);
    expect(JSON.parse(json.stdout.split('\n')[1])).toMatchObject({
      queues: [{ group: 'of a', counts: { waiting: 2 }, jobs: { waiting: [{ id: '1' }, { id: '3' }] } }],
    });
  });

  it('has the server list its clients every ten seconds, and not at each tick', async () => {
    const own = await OwnServer.start();
    try {
      const queue = stage.queue({ connection: own.connection });
      await queue.add('job', 1);
      const url = `redis://127.0.0.1:${own.port}`;
      const args = ['watch', queue.name, '--interval', '100ms', '--ticks', '4', '--json', '--url', url];
      const { stdout } = await cli(args);
      const told = stdout.trim().split('\n');
      expect(told.map((each) => JSON.parse(each).queues[0].workers)).toEqual(Array(4).fill({ count: 0, names: [] }));
      const redis = own.client();
      expect(await redis.info('commandstats')).toContain('cmdstat_client|list:calls=1,');
      await redis.quit();
      await queue.close();
    } finally {
      await own.close();
    }
  });

  it('leaves nothing behind at a tick', async () => {
    const queue = stage.queue();
    await queue.add('job', 1);
    // Node warns of what gathers more than ten listeners
    const { code, stdout, stderr } = await cli(['watch', queue.name, '--interval', '100ms', '--ticks', '15']);
    expect([code, stderr, stdout.trim().split('\n').length]).toEqual([0, '', 15]);
  });

  it('goes on when the server is back, and says meanwhile that there is no answer', async () => {
    const own = await OwnServer.start('--appendonly', 'yes');
    try {
      const queue = stage.queue({ connection: own.connection });
      await queue.add('job', 1);
      const child = startCli(['watch', queue.name, '--interval', '100ms', '--url', `redis://127.0.0.1:${own.port}`]);
      const [lines, complaints] = [child.stdout, child.stderr].map((input) => createInterface(input));
      await once(lines, 'line');
      own.freeze();
      expect(await once(complaints, 'line')).toEqual([
        expect.stringMatching(/^chasquimq watch: no answer from the server for 2s/),
      ]);
      await own.start();
      await once(lines, 'line');
      const end = once(child, 'close');
      child.kill('SIGINT');
      expect(await end).toEqual([0, null]);
      await queue.waitUntilReady();
      await queue.close();
      stage.takeErrors();
    } finally {
      await own.close();
    }
  });

  it('ends when one of many names has no queue', async () => {
    const names = Array.from({ length: 30 }, (_, i) => stage.name(`q${i}`));
    for (const i of names.keys()) await stage.queue({}, `q${i}`).add('job', 1);
    const missing = stage.name('nothing-like-it');
    const { code, stdout, stderr } = await cli(['watch', names[0] ?? '', missing, ...names.slice(1), '--ticks', '1']);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`There is no queue ${missing}`);
  });

  it('ends when nobody reads on', async () => {
    const queue = stage.queue();
    await queue.add('job', 1);
    const child = startCli(['watch', queue.name, '--interval', '100ms']);
    await once(child.stdout, 'data');
    const closed = once(child, 'close');
    child.stdout.destroy();
    expect(await closed).toEqual([0, null]);
  });
});

describe('watch, in a terminal', () => {
  const stage = useStage(chasquimq);

  /** A terminal of that size, as far as the command knows. */
  function terminal(columns: number, rows: number) {
    let shown = '';
    const stdin = Object.assign(new EventEmitter(), {
      isTTY: true,
      isRaw: false,
      setRawMode: (raw: boolean) => (stdin.isRaw = raw),
      resume: () => {},
      pause: () => {},
    });
    const ending = new AbortController();
    const io: Io = {
      stdin: stdin,
      stdout: { write: (text: string) => (shown += text), columns, rows },
      stderr: { write: () => {} },
      isTTY: true,
      signal: ending.signal,
      env: { REDIS_URL: serverUrl() },
    };
    return { io, stdin, ending, shown: () => shown };
  }

  it.each([
    ['q', 'q'],
    ['Ctrl-C', '\x03'],
  ])('draws a table until somebody types %s, and leaves the terminal as it was', async (_, key) => {
    const queue = stage.queue();
    await queue.add('job', 1);
    const { io, stdin, shown } = terminal(200, 24);
    const running = watch.run([queue.name, '--interval', '100ms'], io);
    const head = '\x1b[?1049h\x1b[?25l\x1b[H';
    await until('two tables', () => shown().split('QUEUE').length > 2);
    expect(shown().startsWith(head)).toBe(true);
    expect(shown()).toContain(`${queue.name}        1`);
    expect(stdin.isRaw).toBe(true);
    stdin.emit('data', Buffer.from(key));
    expect(await running).toBe(0);
    expect(shown().endsWith('\x1b[?25h\x1b[?1049l')).toBe(true);
    expect([stdin.isRaw, stdin.listenerCount('data')]).toEqual([false, 0]);
  });

  it('draws a group with its jobs', async () => {
    const queue = stage.queue() as unknown as Queue;
    await queue.add('export', 1, { group: { id: 'a' } });
    const { io, stdin, shown } = terminal(200, 24);
    const running = watch.run([queue.name, '--group', 'a'], io);
    await until('a table', () => /JOBS .*waiting +1 +export /s.test(shown()));
    expect(shown()).toMatch(/QUEUE +GROUP +WAITING/);
    stdin.emit('data', Buffer.from('q'));
    expect(await running).toBe(0);
  });

  it('ends on a signal as well', async () => {
    const queue = stage.queue();
    await queue.add('job', 1);
    const { io, ending, shown } = terminal(80, 24);
    const running = watch.run([queue.name], io);
    await until('a table', () => shown().includes('QUEUE'));
    ending.abort();
    expect(await running).toBe(0);
    expect(shown().endsWith('\x1b[?25h\x1b[?1049l')).toBe(true);
  });

  it('draws what fits, over what was there', () => {
    expect(frame(['one', 'two'], 80, 24)).toBe('\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J');
    expect(frame(['a long line', 'two', 'three', 'four'], 6, 3)).toBe(
      '\x1b[Ha long\x1b[K\r\ntwo\x1b[K\r\n... 2 \x1b[K\x1b[J',
    );
  });
});
