// What a tracer does that goes by BullMQ's files: it wraps methods of the class in each. Says which calls it saw, and whether
// those are the classes that everybody gets.
const WRAPPED = {
  queue: ['Queue', ['add', 'addBulk']],
  worker: ['Worker', ['callProcessJob']],
  'flow-producer': ['FlowProducer', ['add']],
};
const seen = [];
const classes = {};
for (const [file, [name, methods]] of Object.entries(WRAPPED)) {
  const path = `LIBRARY/dist/cjs/classes/${file}.js`;
  const { [name]: Class } = require(path);
  classes[name] = Class;
  for (const method of methods) {
    // one that is inherited is found by nobody who reads the file
    if (!Object.hasOwn(Class.prototype, method)) throw new Error(`no ${method} in ${path}`);
    const original = Class.prototype[method];
    Class.prototype[method] = function (...args) {
      seen.push(`${name}.${method}`);
      return original.apply(this, args);
    };
  }
}

const { FlowProducer, Queue, Worker } = require('LIBRARY');
const { version } = require('LIBRARY/package.json');
const connection = JSON.parse(process.env.CONNECTION);
const name = process.env.QUEUE;
const queue = new Queue(name, { connection });
const flows = new FlowProducer({ connection });
const worker = new Worker(name, async (job) => job.name, { connection });
let left = 3;
worker.on('completed', async () => {
  if (--left > 0) return;
  const imported = await import('LIBRARY');
  const same = Object.entries(classes).map(
    ([key, Class]) => require('LIBRARY')[key] === Class && imported[key] === Class,
  );
  await Promise.all([queue, flows, worker].map((opened) => opened.close()));
  console.log(JSON.stringify({ version, seen: seen.sort(), same: same.every(Boolean) }));
});
void queue.add('one', {});
void queue.addBulk([{ name: 'two', data: {} }]);
void flows.add({ name: 'three', queueName: name });
