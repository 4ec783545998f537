// What a producer process leaves behind that is killed with SIGKILL: every job it was told of is there, as it was
// added, and none is there twice (issue 2).
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chasquimq } from '../support/chasquimq.js';
import { Program } from '../support/program.js';
import { Random } from '../support/random.js';
import { server } from '../support/redis.js';
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
    const queue = stage.queue();
    const redis = stage.keep(closable(new Redis(server)));
    const random = new Random(4);
    const file = join(folder, 'ledger');
    for (let owner = 0; owner < KILLS; owner++) {
      const told = owner % 2 === 1;
      const env = { QUEUE: stage.queueName, OWNER: owner, LEDGER: file, DIE_AT: 500 + random.next(1_500) };
      const program = Program.start('ledger-producer.mjs', { env: { ...env, DIE_HOW: told ? 'told' : 'itself' } });
      stage.keep(program);
      if (told) {
        await program.said('reached');
        await program.kill();
      }
      expect(await program.ended, program.errors).toEqual({ code: null, signal: 'SIGKILL' });
      // Redis goes on reading what the process had sent, up to its end.
      await until('the end of its connections', async () => {
        return !String(await redis.client.client('LIST')).includes(`${stage.queueName}-${owner}`);
      });
    }

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

function closable(client: Redis): { client: Redis; close(): Promise<unknown> } {
  return { client, close: () => client.quit() };
}
