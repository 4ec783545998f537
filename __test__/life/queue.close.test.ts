// What close() does when the server keeps the connection and answers nothing: it gives up after some 2 s (docs/differences.md,
// `close-with-redis-gone`).
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { FlowProducer, Queue, Worker } from '../../src/index.js';
import { chasquimq } from '../support/chasquimq.js';
import { OwnServer } from '../support/own-server.js';
import { useStage } from '../support/stage.js';

/** More than the 2 s, for slow machines, and less than any time-out of a connection. */
const ENDS_MS = 9_000;

interface Adder {
  opened: Queue | FlowProducer;
  add(): Promise<unknown>;
}

async function expectClosed(opened: { close(): Promise<void> }): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => (timer = setTimeout(() => resolve('late'), ENDS_MS)));
  expect(await Promise.race([opened.close(), late])).toBeUndefined();
  clearTimeout(timer);
}

const ways: [string, (connection: object, name: string) => Adder][] = [
  [
    'a queue',
    (connection, name) => {
      const opened = new Queue(name, { connection });
      opened.on('error', () => {});
      return { opened, add: () => opened.add('job', {}) };
    },
  ],
  [
    'a queue, and a call behind it',
    (connection, name) => {
      const opened = new Queue(name, { connection });
      opened.on('error', () => {});
      const add = () => {
        opened.add('job', {}).catch(() => {});
        return opened.count();
      };
      return { opened, add };
    },
  ],
  [
    'a flow producer',
    (connection, queueName) => {
      const opened = new FlowProducer({ connection });
      return { opened, add: () => opened.add({ name: 'job', queueName }) };
    },
  ],
];

describe.each(ways)('close of %s with an add under way', (_, open) => {
  const stage = useStage(chasquimq);

  async function expectEnd({ opened, add }: Adder, meanwhile?: Promise<void>): Promise<void> {
    const refused = expect(add()).rejects.toThrow('Connection is closed.');
    await meanwhile;
    await expectClosed(opened);
    await refused;
  }

  it('ends when the server never answered', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => sockets.push(socket.on('error', () => {}).resume()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const connected = new Promise<void>((resolve) => server.once('connection', () => resolve()));
    const adder = open({ host: '127.0.0.1', port }, stage.queueName);
    stage.keep(adder.opened);
    await expectEnd(adder, connected);
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  it('ends when the server answers no more', async () => {
    const server = stage.keep(await OwnServer.start());
    const adder = open({ host: '127.0.0.1', port: server.port }, stage.queueName);
    await stage.keep(adder.opened).waitUntilReady();
    server.freeze();
    await expectEnd(adder);
  });
});

const idle: [string, (connection: object, name: string) => Promise<{ close(): Promise<void> }>][] = [
  [
    'a queue',
    async (connection, name) => {
      const queue = new Queue(name, { connection });
      await queue.add('job', {});
      return queue;
    },
  ],
  [
    'a flow producer',
    async (connection, queueName) => {
      const producer = new FlowProducer({ connection });
      await producer.add({ name: 'job', queueName });
      return producer;
    },
  ],
  [
    'a worker',
    async (connection, name) => {
      const queue = new Queue(name, { connection });
      const worker = new Worker(name, async () => 1, { connection });
      const completed = new Promise((resolve) => worker.once('completed', resolve));
      await queue.add('job', {});
      await completed;
      await queue.close();
      return worker;
    },
  ],
];

describe.each(idle)('close of %s that waits for nothing', (_, open) => {
  const stage = useStage(chasquimq);

  it('ends when the server answers no more', async () => {
    const server = stage.keep(await OwnServer.start());
    const opened = await open(server.connection, stage.queueName);
    server.freeze();
    await expectClosed(opened);
  });
});
