// Ends as the name of its job says: by an error that throws when it is looked at, or one that nothing caught.
const oddity = () => {
  throw new RangeError('oddity');
};
const withGetter = (member) => Object.defineProperty(new Error('boom'), member, { enumerable: true, get: oddity });

const kinds = {
  message: () => Promise.reject(withGetter('message')),
  stack: () => Promise.reject(withGetter('stack')),
  member: () => Promise.reject(withGetter('member')),
  inner: () => Promise.reject(Object.assign(new Error('boom'), { inner: withGetter('member') })),
  proxy: () => Promise.reject(new Proxy(new Error('boom'), { get: oddity })),
  text: () => Promise.reject(Object.assign(new Error('boom'), { message: { toString: oddity } })),
  plain: () => Promise.reject({ message: 'boom', code: 7 }),
  empty: () => Promise.reject(new Error()),
  result: () => Promise.resolve({ get: 1, toJSON: oddity }),
  async later() {
    setTimeout(oddity);
    await new Promise(() => {});
  },
  sends: () => {
    process.send(null);
    return 'fine';
  },
  // calls that no processor has
  removes: () => {
    process.send({ cmd: 'call', method: 'remove', args: [] });
    return 'fine';
  },
  asks: () =>
    new Promise((resolve) => {
      process.on(
        'message',
        ({ cmd, question, error }) => cmd === 'answer' && question === -1 && resolve(error.message),
      );
      process.send({ cmd: 'call', method: 'constructor', args: [], question: -1 });
    }),
  bare: () => {
    process.send({ cmd: 'failed' }, () => process.exit(0));
    return new Promise(() => {});
  },
  fine: () => 'fine',
};

module.exports = (job) => kinds[job.name](job);
