// Ways to end that are less orderly: QUEUE, CASE, NOWHERE (a port on which nothing listens), PORT (of a way to the
// server that its test may cut). Each case says `closed` when it has nothing more to do.
import { createInterface } from 'node:readline';
import { Queue, QueueEvents, Worker } from 'chasquimq';

const { QUEUE, CONNECTION, CASE, NOWHERE, PORT } = process.env;
const server = JSON.parse(CONNECTION);
const nowhere = { host: '127.0.0.1', port: Number(NOWHERE) };
const shaky = { host: '127.0.0.1', port: Number(PORT) };

function open(connection, processor, opts = {}) {
  const opened = {
    queue: new Queue(QUEUE, { connection }),
    events: new QueueEvents(QUEUE, { connection }),
    worker: new Worker(QUEUE, processor, { connection, ...opts }),
  };
  for (const each of Object.values(opened)) each.on('error', () => {});
  return opened;
}

const closeAll = (opened) => Promise.all(Object.values(opened).map((each) => each.close()));
const told = (wanted) =>
  new Promise((resolve) => {
    const orders = createInterface(process.stdin);
    orders.on('line', (line) => {
      if (line !== wanted) return;
      orders.close();
      process.stdin.destroy();
      resolve();
    });
  });
const soon = () => new Promise((resolve) => setTimeout(resolve, 5));
const bulk = (count) => Array.from({ length: count }, (_, i) => ({ name: 'job', data: i }));

const cases = {
  async amidWork() {
    const half = withResolvers();
    let ended = 0;
    const opened = open(
      server,
      async () => {
        await soon();
        if (++ended === 50) half.resolve();
      },
      { concurrency: 20 },
    );
    await opened.queue.addBulk(bulk(1_000));
    await half.promise;
    await closeAll(opened);
  },

  async amidAdding() {
    const opened = open(server, async () => {});
    const adding = [
      ...bulk(200).map(({ name, data }) => opened.queue.add(name, data)),
      opened.queue.addBulk(bulk(5_000)),
    ];
    await closeAll(opened);
    const outcomes = await Promise.allSettled(adding);
    console.log('added', outcomes.filter(({ status }) => status === 'fulfilled').length);
  },

  async byForce() {
    const started = withResolvers();
    const opened = open(server, () => {
      started.resolve();
      return new Promise(() => {});
    });
    await opened.queue.add('job', 1);
    await started.promise;
    await opened.worker.close(true);
    await closeAll(opened);
  },

  async neverReached() {
    const opened = open(nowhere, async () => {});
    await new Promise((resolve) => opened.queue.once('error', resolve));
    const adding = opened.queue.add('job', 1).catch((error) => error);
    await closeAll(opened);
    console.log('refused', (await adding).message);
  },

  async neverConnected() {
    const queue = new Queue(QUEUE, { connection: server });
    await queue.close();
    const other = new Queue(QUEUE, { connection: nowhere });
    await other.close();
    const events = new QueueEvents(QUEUE, { connection: server, autorun: false });
    await events.close();
    const worker = new Worker(QUEUE, async () => {}, { connection: server, autorun: false });
    await worker.close();
    const idle = new Worker(QUEUE, null, { connection: nowhere });
    idle.on('error', () => {});
    await idle.close();
  },

  async serverGone() {
    const opened = open(shaky, async () => {});
    const completed = new Promise((resolve) => opened.worker.once('completed', resolve));
    await opened.queue.add('job', 1);
    await completed;
    console.log('ready');
    await told('close');
    await closeAll(opened);
  },

  async disconnected() {
    const opened = open(server, async () => {});
    await opened.queue.add('job', 1);
    await Promise.all(Object.values(opened).map((each) => each.disconnect()));
  },

  async onSignal() {
    const opened = open(server, soon, { concurrency: 5 });
    const signal = new Promise((resolve) => process.once('SIGTERM', resolve));
    await opened.queue.addBulk(bulk(1_000));
    console.log('ready');
    await signal;
    await closeAll(opened);
  },

  // The one that calls process.exit, with everything open and busy.
  async exits() {
    const opened = open(server, soon, { concurrency: 50 });
    await opened.queue.addBulk(bulk(1_000));
    opened.queue.addBulk(bulk(1_000));
    opened.worker.once('completed', () => {
      console.log('closed');
      process.exit();
    });
    await new Promise(() => {});
  },
};

function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve) => (made.resolve = resolve));
  return made;
}

await cases[CASE]();
console.log('closed');
