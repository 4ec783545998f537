// A program that has closed what it opened ends by itself, and one that has not can be ended at any moment.
import { describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { Program } from '../support/program.js';
import { Proxy } from '../support/proxy.js';
import { closedPort } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

/** A program that closes has ended within milliseconds; the rest is for slow machines. */
const END_MS = 60_000;
const WELL = { code: 0, signal: null };

describe('exit', () => {
  const stage = useStage(chasquimq);

  function start(file: string, env: Record<string, string | number> = {}): Program {
    return stage.keep(Program.start(file, { env: { QUEUE: stage.queueName, ...env } }));
  }

  async function expectEnd(program: Program): Promise<void> {
    await program.said('closed');
    expect(await program.end(END_MS), program.errors).toEqual(WELL);
    expect(program.errors).toBe('');
  }

  it.each([
    ['an ES module', 'closes.mjs'],
    ['a CommonJS script', 'closes.cjs'],
  ])('%s ends when all is closed', async (_, file) => {
    const program = start(file);
    await expectEnd(program);
    expect(program.lines).toEqual(['result 42', 'closed']);
  });

  it.each([
    ['in the middle of work', 'amidWork'],
    ['by force, with a handler that never ends', 'byForce'],
    ['before anything was connected', 'neverConnected'],
    ['without waiting', 'disconnected'],
  ])('a program that closes %s ends', async (_, name) => {
    await expectEnd(start('ends.mjs', { CASE: name, NOWHERE: await closedPort() }));
  });

  it('a program that closes in the middle of work leaves no job active', async () => {
    const queue = stage.queue();
    await expectEnd(start('ends.mjs', { CASE: 'amidWork' }));
    const { waiting = 0, active, completed = 0 } = await queue.getJobCounts('waiting', 'active', 'completed');
    expect([active, waiting + completed]).toEqual([0, 1_000]);
    expect(completed).toBeGreaterThanOrEqual(50);
  });

  it('a program that closes while it adds ends, with every add answered', async () => {
    const queue = stage.queue();
    const program = start('ends.mjs', { CASE: 'amidAdding' });
    await expectEnd(program);
    expect(program.lines).toEqual(['added 201', 'closed']);
    const { waiting = 0, active, completed = 0 } = await queue.getJobCounts('waiting', 'active', 'completed');
    expect([active, waiting + completed]).toEqual([0, 5_200]);
  });

  it('a program that never reached a server ends', async () => {
    const program = start('ends.mjs', { CASE: 'neverReached', NOWHERE: await closedPort() });
    await expectEnd(program);
    expect(program.lines).toEqual(['refused Connection is closed.', 'closed']);
  });

  it('a program that closes when its server has gone away ends', async () => {
    const proxy = stage.keep(new Proxy());
    await proxy.open();
    const program = start('ends.mjs', { CASE: 'serverGone', PORT: proxy.port });
    await program.said('ready');
    await proxy.close();
    program.tell('close');
    await expectEnd(program);
  });

  it('a program that closes on SIGTERM ends well', async () => {
    const queue = stage.queue();
    const program = start('ends.mjs', { CASE: 'onSignal' });
    await program.said('ready');
    process.kill(program.pid, 'SIGTERM');
    await expectEnd(program);
    expect(await queue.getActiveCount()).toBe(0);
  });

  it('process.exit in the middle of everything ends a program well', async () => {
    await expectEnd(start('ends.mjs', { CASE: 'exits' }));
  });

  it('threads that are terminated, or end, harm neither the process nor each other', async () => {
    const program = start('threads.mjs');
    await expectEnd(program);
    expect(program.lines.filter((line) => line === 'terminated 1')).toHaveLength(6);
    expect(program.lines.filter((line) => line === 'ended 0')).toHaveLength(3);
  });

  it('what is opened and closed again and again leaves no connection', async () => {
    const own = stage.keep(await OwnServer.start());
    const { connection } = own;
    const admin = own.client();
    const connections = async () =>
      String(await admin.client('LIST'))
        .trimEnd()
        .split('\n').length;
    for (let round = 0; round < 20; round++) {
      const queue = stage.queue({ connection });
      const [worker, events] = [stage.worker(async () => undefined, { connection }), stage.events({ connection })];
      const job = await queue.add('job', {});
      await job.waitUntilFinished(events);
      expect(await connections()).toBeGreaterThan(3);
      await Promise.all([worker.close(), events.close(), queue.close()]);
    }
    await until('the connections to end', async () => (await connections()) === 1);
    await admin.quit();
  });

  it('nor an open file, a thread or memory', async () => {
    const env = { QUEUE: stage.queueName };
    const program = stage.keep(Program.start('reopens.mjs', { env, nodeOptions: ['--expose-gc'] }));
    await expectEnd(program);
    const [before = [], after = []] = program.lines.slice(0, 2).map((line) => line.split(' ').slice(1).map(Number));
    // 40 rounds lie between them; one or two files are opened and closed by Node itself.
    expect(after.map((count, i) => count - Number(before[i]) < 5)).toEqual([true, true]);
    // The last ones may still be on the stack of what has just ended.
    expect(Number(await program.said('kept'))).toBeLessThan(10);
  });
});
