// TLS: what `connection.tls` means is what it means with ioredis, whose options go to Node's tls.connect.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from 'bullmq';
import type { Queue } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { expectStarts, movers } from '../support/moving-jobs.js';
import { server } from '../support/redis.js';
import { useStage } from '../support/stage.js';
import { Authority, TlsFront } from '../support/tls.js';
import type { Certificate } from '../support/tls.js';
import { EventLog } from '../support/waiting.js';

describe('connection.tls', () => {
  const stage = useStage(chasquimq);
  let authority: Authority;
  let stranger: Authority;
  let certificate: Certificate;
  beforeAll(() => {
    authority = new Authority();
    stranger = new Authority();
    certificate = authority.sign('DNS:localhost,IP:127.0.0.1');
  });
  afterAll(async () => {
    await authority.close();
    await stranger.close();
  });

  async function front(shown: Certificate, clientCa?: string): Promise<TlsFront> {
    return stage.keep(await new TlsFront(shown, clientCa).open());
  }

  function to(front: TlsFront, tls: object | true, host = '127.0.0.1'): ConnectionOptions {
    const { username, password, db } = server;
    return { host, port: front.port, db, ...(username && { username }), ...(password && { password }), tls };
  }

  /** Sends a job through a queue, a worker and a QueueEvents that all got `connection`. */
  async function expectRoundTrip(connection: ConnectionOptions): Promise<void> {
    const queue = stage.queue({ connection });
    const events = stage.events({ connection });
    const worker = stage.worker(async (job) => (job.data as number) + 1, { connection });
    const job = await queue.add('job', 1);
    expect(await job.waitUntilFinished(events, 60_000)).toBe(2);
    for (const opened of [worker, events, queue]) await opened.close();
  }

  it.each([
    ['text', () => authority.ca],
    ['a Buffer', () => Buffer.from(authority.ca)],
    ['a list', () => [stranger.ca, authority.ca]],
  ])('with the certificate of the authority as %s', async (_, ca) => {
    await expectRoundTrip(to(await front(certificate), { ca: ca() }));
  });

  it('with jobs that have limits of keys, and are given back', async () => {
    const connection = to(await front(certificate), { ca: authority.ca });
    const queue = stage.queue({ connection }) as unknown as Queue;
    await expectStarts(queue, () => movers['in its process'](stage, { connection: connection as never }));
  });

  it.each(['127.0.0.1', 'localhost'])('checks the name %s that it connects to', async (host) => {
    await expectRoundTrip(to(await front(certificate), { ca: authority.ca }, host));
  });

  it('with a server that shows the very certificate that is given', async () => {
    const own = authority.selfSigned('/CN=localhost');
    await expectRoundTrip(to(await front(own), { ca: own.cert }));
    await expectRoundTrip(to(await front(own), { ca: [stranger.ca, own.cert] }));
    await expectRoundTrip(to(await front(own), { rejectUnauthorized: false }));
  });

  it.each<[string, () => { own: Certificate; ca: string }, RegExp]>([
    [
      'not the one that is given',
      () => ({ own: authority.selfSigned('/CN=localhost'), ca: authority.selfSigned('/CN=localhost').cert }),
      /certificate/i,
    ],
    [
      'for another name',
      () => {
        const own = authority.selfSigned('/CN=other', 'DNS:other.example');
        return { own, ca: own.cert };
      },
      /not valid for name/i,
    ],
  ])('not with a certificate that signs itself and is %s', async (_, given, message) => {
    const { own, ca } = given();
    const queue = stage.queue({ connection: to(await front(own), { ca }) });
    const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
    expect(error.message).toMatch(message);
    await queue.close();
    stage.takeErrors();
  });

  it('by a rediss URL, with or without options beside it', async () => {
    const { username, password, db } = server;
    const login = password ? `${username ?? ''}:${password}@` : '';
    const { port } = await front(certificate);
    const url = `rediss://${login}localhost:${port}/${db}`;
    await expectRoundTrip({ url, tls: { ca: authority.ca } });
  });

  it('with a server whose certificate nobody vouches for, on request', async () => {
    await expectRoundTrip(to(await front(certificate), { rejectUnauthorized: false }));
    await expectRoundTrip(to(await front(certificate), { rejectUnauthorized: false, ca: stranger.ca }));
  });

  it('looks for another name than the host when told', async () => {
    const named = authority.sign('DNS:redis.example');
    await expectRoundTrip(to(await front(named), { ca: authority.ca, servername: 'redis.example' }));
  });

  it('asks a function about each server, in every class', async () => {
    const named = await front(authority.sign('DNS:redis.example'));
    const asked: string[] = [];
    const checkServerIdentity = (host: string) => void asked.push(host);
    await expectRoundTrip(to(named, { ca: authority.ca, checkServerIdentity }));
    expect(asked).toEqual(named.agreements.map(() => '127.0.0.1'));
    expect(asked.length).toBeGreaterThan(2);
  });

  it('with a certificate of its own', async () => {
    const asking = await front(certificate, authority.ca);
    const own = authority.sign('DNS:client');
    await expectRoundTrip(to(asking, { ca: authority.ca, ...own }));
    expect(new Set(asking.agreements.map(({ client }) => client))).toEqual(new Set(['server']));
  });

  it.each([
    ['from an authority that is not trusted', () => ({ shown: certificate, tls: { ca: stranger.ca } })],
    ['from an authority that nobody knows', () => ({ shown: certificate, tls: true as const })],
    ['for another name', () => ({ shown: authority.sign('DNS:other.example'), tls: { ca: authority.ca } })],
  ])('a certificate %s is reported, and the queue works once it is right', async (_, given) => {
    const { shown, tls } = given();
    const wrong = await front(shown);
    const connection = to(wrong, tls);
    const queue = stage.queue({ connection });
    const worker = stage.worker(async () => 'done', { connection });
    const logs = [queue, worker].map((emitter) => new EventLog(emitter, ['error', 'completed']));
    const adding = queue.add('job', {});
    for (const log of logs) {
      const [error] = await log.get<[Error]>('error');
      expect(error).toBeInstanceOf(Error);
      expect(error.message).toMatch(/certificate/i);
    }
    if (tls === true) {
      // Nothing that the server could show would be trusted.
      await Promise.all([worker.close(), queue.close(), adding.catch(() => undefined)]);
    } else {
      wrong.present(tls.ca === stranger.ca ? stranger.sign('IP:127.0.0.1') : certificate);
      expect((await adding).id).toBe('1');
      await logs[1]?.get('completed');
    }
    stage.takeErrors();
  });

  it('a server that does not speak TLS is reported, and everything closes', async () => {
    // Such a server waits for the end of what it takes for a command.
    const connection = { ...server, tls: { ca: authority.ca }, connectTimeout: 300 };
    const queue = stage.queue({ connection });
    const [error] = await new EventLog(queue, ['error']).get<[Error]>('error');
    expect(error).toMatchObject({ code: 'ETIMEDOUT' });
    await queue.close();
    stage.takeErrors();
  });
});
