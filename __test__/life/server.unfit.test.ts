// A server that queues cannot work with says so at once: to whoever waits for it, adds, or listens.
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { ConnectionOptions } from 'bullmq';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';
import { EventLog, rejection } from '../support/waiting.js';

describe('server.unfit', () => {
  const stage = useStage(chasquimq);
  const listeners: Server[] = [];
  const sockets = new Set<Socket>();
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    for (const listener of listeners.splice(0)) await new Promise((resolve) => listener.close(resolve));
  });

  /** A server that tells this version, and agrees to everything else. */
  async function serverOf(version: string): Promise<ConnectionOptions> {
    const info = `# Server\r\nredis_version:${version}\r\nrun_id:one\r\n`;
    const listener = createServer((socket) => {
      sockets.add(socket.on('error', () => undefined));
      socket.on('data', (data) => {
        // Commands come whole here, and INFO is the only one with an answer of its own.
        for (const command of data
          .toString()
          .split(/^\*\d+\r\n/m)
          .slice(1)) {
          socket.write(command.includes('INFO') ? `$${info.length}\r\n${info}\r\n` : '+OK\r\n');
        }
      });
    });
    listeners.push(listener);
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    return { host: '127.0.0.1', port: (listener.address() as AddressInfo).port };
  }

  // server-7: a wanted difference (docs/differences.md)
  it.each(['6.2.14', '5.0.7'])('that is too old: %s', async (version) => {
    const connection = await serverOf(version);
    const told = `Redis version needs to be greater or equal than 7.0.0 Current: ${version}`;
    const queue = stage.queue({ connection });
    const worker = stage.worker(async () => undefined, { connection });
    const events = stage.events({ connection });
    const logs = [queue, worker, events].map((emitter) => new EventLog(emitter, ['error']));
    for (const log of logs) expect((await log.get<[Error]>('error'))[0].message).toBe(told);
    for (const emitter of [queue, worker, events]) {
      expect(await rejection(emitter.waitUntilReady())).toMatchObject({ message: told, code: 'ERR_SERVER_TOO_OLD' });
    }
    expect((await rejection(queue.add('job', 1))).message).toBe(told);
    for (const emitter of [worker, events, queue]) await emitter.close();
    stage.takeErrors();
  });

  it.each(['7.0.0', '8.2.1', '10.0.0'])('is not one of version %s', async (version) => {
    const queue = stage.queue({ connection: await serverOf(version) });
    await queue.waitUntilReady();
  });

  it('whose version nobody is to check', async () => {
    const connection = await serverOf('6.2.14');
    await stage.queue({ connection, skipVersionCheck: true }).waitUntilReady();
  });

  it.each(['EVALSHA', 'EVAL'])('that knows neither FCALL nor %s', async (command) => {
    const own = stage.keep(await OwnServer.start('--rename-command', 'FCALL', '', '--rename-command', command, ''));
    const { connection } = own;
    const told = `The server runs no scripts, which ChasquiMQ needs: it does not know the command ${command}`;
    const queue = stage.queue({ connection });
    expect(await rejection(queue.add('job', { secret: 1 }))).toMatchObject({ message: told, code: 'ERR_NO_SCRIPTS' });
    expect((await rejection(queue.getJobCounts())).message).toBe(told);
    const worker = stage.worker(async () => undefined, { connection });
    expect((await new EventLog(worker, ['error']).get<[Error]>('error'))[0].message).toBe(told);
    for (const opened of [worker, queue]) await opened.close();
    stage.takeErrors();
  });

  it('that lets this user call neither functions nor scripts', async () => {
    const own = stage.keep(await OwnServer.start());
    const admin = own.client();
    await admin.acl('SETUSER', 'few', 'on', '>secret', '~*', '+@all', '-fcall', '-evalsha');
    await admin.quit();
    const queue = stage.queue({ connection: { ...own.connection, username: 'few', password: 'secret' } });
    expect((await rejection(queue.add('job', 1))).message).toMatch(/^NOPERM .*evalsha/i);
  });
});
