// What a producer process leaves behind that is killed with SIGKILL: every job it was told of is there, as it was
// added, and none is there twice.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { useStage } from '../support/stage.js';
import { until } from '../support/waiting.js';

const KILLS = 4;

describe('producer.kill', () => {
  const stage = useStage(chasquimq);
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'chasquimq-life-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('jobs that were acknowledged are there', async () => {
    const own = stage.keep(await OwnServer.start());
    const admin = own.client();
    const random = new Random(4);
    const file = join(folder, 'ledger');
    const common = { CONNECTION: JSON.stringify(own.connection), QUEUE: stage.queueName, LEDGER: file };
    for (let owner = 0; owner < KILLS; owner++) {
      const told = owner % 2 === 1;
      const env = { ...common, OWNER: owner, DIE_AT: 500 + random.next(1_500), DIE_HOW: told ? 'told' : 'itself' };
      const program = stage.keep(Program.start('ledger-producer.mjs', { env }));
      if (told) {
        await program.said('reached');
        await program.kill();
      }
      expect(await program.ended, program.errors).toEqual({ code: null, signal: 'SIGKILL' });
      // Redis goes on reading what the process had sent, up to its end.
      const connections = async () =>
        String(await admin.client('LIST'))
          .trimEnd()
          .split('\n').length;
      await until('the end of its connections', async () => (await connections()) === 1);
    }
    await admin.quit();

    const queue = stage.queue({ connection: own.connection });
    const stored = new Map((await queue.getJobs(['waiting'])).map(({ id, data }) => [String(id), String(data)]));
    const acknowledged = readFileSync(file, 'utf8').trimEnd().split('\n');
    expect(acknowledged.length).toBeGreaterThan(500 * KILLS);
    for (const line of acknowledged) {
      const [id = '', data] = line.split(' ');
      expect([id, stored.get(id)]).toEqual([id, data]);
    }
    expect(await queue.getWaitingCount()).toBe(stored.size);
    expect(new Set(stored.values()).size).toBe(stored.size);

    // What was cut off leaves no trace that others could stumble over.
    const next = await queue.add('next', 'next');
    expect(stored.has(String(next.id))).toBe(false);
    expect(await next.getState()).toBe('waiting');
  });
});
