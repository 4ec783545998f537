/** How a block of the docs is tried. A block that has no use here has to compile, and to run to its end. */
export interface Use {
  /** Words by which the block is known on its page. */
  with: string;
  before?: string;
  after?: string;
  /** Puts other figures into the program. */
  but?: (text: string) => string;
  /** The lines that it prints; unless given they are not looked at. */
  says?: readonly (string | RegExp)[];
  /** It ends without being told to: everything in it is closed. */
  endsByItself?: boolean;
  /** It is a file that another block of its page uses. */
  isPart?: boolean;
}

const SWAP: Use = { with: "+import { Queue, QueueEvents, Worker } from 'chasquimq'", says: [] };
const SENT = "new Worker('mail', async () => 'sent', { connection });";

export const uses: Readonly<Record<string, readonly Use[]>> = {
  'README.md': [
    SWAP,
    { with: "from 'chasquimq';\n\nconst connection", says: ['sent to ana@example.com'], endsByItself: true },
  ],
  'docs/moving-from-bullmq.md': [
    SWAP,
    {
      with: 'QueuePro',
      after: `
        await once(worker, 'completed');
        await worker.close();
        await queue.close();`,
      says: ['tenant 1 ana'],
      endsByItself: true,
    },
    {
      with: 'BullQueue',
      before: `
        import { Queue as OldQueue } from 'bullmq';
        const old = new OldQueue('mail', { connection: JSON.parse(process.env.CONNECTION ?? '') });
        await old.upsertJobScheduler('daily', { every: 60_000 }, { name: 'digest', data: { to: 'ana' } });`,
      after: `
        console.log(await old.getJobSchedulersCount());
        const [moved] = await new Queue('mail', { connection }).getJobSchedulers();
        console.log(moved.key, moved.every, moved.name, moved.template?.data.to);`,
      says: ['0', 'daily 60000 digest ana'],
    },
  ],
  'docs/guides/finding-jobs.md': [
    { with: 'countJobs({ name', says: ['1 2'] },
    { with: 'limit: 2', says: ['1 2', '3 4', '5'] },
    { with: 'moveJobs(dead', says: ['0 1'] },
    { with: 'AbortController', says: ['enough: waiting'] },
  ],
  'docs/guides/latency.md': [
    {
      with: 'latency: true',
      says: [/^the oldest job has waited \d+ ms; /, /^jobs run \d+/],
    },
    { with: 'console.log(new Date(from)', says: [/Z .*Z 0$/] },
    { with: "latency: 'groups'", says: [/^tenant 1: one job in twenty waited more than \d/] },
  ],
  'docs/guides/autoscaling.md': [
    {
      with: 'backlog',
      before: "await queue.add('old', { to: 'ana' }, { timestamp: Date.now() - 70_000 });",
      says: ['3 workers'],
    },
  ],
  'docs/guides/typescript.md': [{ with: 'Welcome | Bill', says: ['3.00'] }],
  'docs/quick-start.md': [
    {
      with: '// worker.mjs',
      after: `
        const ended = once(worker, 'completed');
        await new Queue('mail', { connection }).add('welcome', { to: 'ana' });
        await ended;`,
      says: ['welcome to ana, try 1', '1 sent'],
    },
    { with: '// add.mjs', endsByItself: true, says: [/^\{$/, ...Array.from({ length: 7 }, () => /\w+/), /^\}$/] },
  ],
  'docs/production.md': [
    {
      with: 'worker.drain',
      before: `
        await queue.addBulk([1, 2, 3].map((data) => ({ name: 'job', data })));
        const mail = async (text) => console.log(text);`,
      after: 'await queue.close();',
      says: ['1', '2', '3'],
      endsByItself: true,
    },
    {
      with: 'SIGTERM',
      before: `
        const mail = (text) => new Promise(() => {
          console.log(text);
          setInterval(() => {}, 1000);
        });`,
      after: `
        process.once('exit', (code) => console.log('exit', code));
        worker.once('active', () => process.kill(process.pid, 'SIGTERM'));
        await queue.add('job', 'mailing');`,
      but: (text) => text.replace('8000', '100'),
      says: ['mailing', 'exit 0'],
      endsByItself: true,
    },
  ],
  'docs/connections.md': [
    {
      with: 'fetchToken',
      before: "const fetchToken = async () => ({ text: 'any, as the server wants none' });",
      but: (text) =>
        text
          .replace(/host: 'cache.internal',\s+port: 6379,\s+tls: true,/, "...JSON.parse(process.env.CONNECTION ?? ''),")
          .replace("'jobs'", "'default'"),
      after: "console.log((await queue.add('job', 1)).id);",
      says: ['1'],
    },
  ],
  'docs/guides/retries.md': [
    { with: 'order: 7', after: "console.log((await queue.getJob('1'))?.opts.attempts);", says: ['5'] },
    {
      with: 'backoffStrategy',
      before: "const charge = async () => { throw new Error('busy'); };",
      after: `
        const state = async () => (await queue.getJob('1'))?.getState();
        while ((await state()) !== 'delayed');
        console.log(await state());`,
      says: ['delayed'],
    },
    {
      with: 'UnrecoverableError',
      after: `
        const ended = once(worker, 'failed');
        const job = await queue.add('charge', {}, { attempts: 3 });
        await ended;
        console.log(await job.getState());`,
      says: ['failed'],
    },
  ],
  'docs/guides/delays.md': [
    { with: 'changeDelay', after: 'console.log(await reminder.getState());', says: ['waiting'] },
    {
      with: 'DelayedError',
      after: `
        const ended = once(worker, 'completed');
        await queue.add('mail', {});
        const [job, result] = await ended;
        console.log(job.attemptsStarted, job.attemptsMade, result);`,
      says: ['2 1 done'],
    },
  ],
  'docs/guides/priorities.md': [
    {
      with: 'password reset',
      after: `
        const names: string[] = [];
        await new Promise<void>((resolve) => {
          new Worker('mail', async (job) => void (names.push(job.name) === 3 && resolve()), { connection });
        });
        console.log(names.join());`,
      says: ['no priority,password reset,report'],
    },
    {
      with: 'changePriority',
      after: 'console.log(job.priority, await queue.getCountsPerPriority([1, 10]));',
      says: ["1 { '1': 1, '10': 0 }"],
    },
  ],
  'docs/guides/rate-limits.md': [
    {
      with: "'smtp'",
      after: "await new Promise<void>((done) => worker.on('completed', ({ name }) => name === 'other' && done()));",
      says: ['first', 'other'],
    },
    {
      with: 'max: 100,',
      before: 'const send = async (job: Job) => job.name;',
      after: "const ended = once(worker, 'completed'); await queue.add('news', {}); console.log((await ended)[1]);",
      says: ['news'],
    },
    {
      with: 'callApi',
      before:
        'let calls = 0; const callApi = async (_data: unknown) => ({ status: calls++ ? 200 : 429, retryAfterMs: 20 });',
      after: "const ended = once(worker, 'completed'); await queue.add('news', {}); await ended; console.log(calls);",
      says: ['2'],
    },
  ],
  'docs/guides/deduplication.md': [
    { with: 'jobId', after: 'console.log(await queue.getWaitingCount());', says: ['1'] },
    { with: 'reindex', after: 'console.log(await queue.getWaitingCount());', says: ['1'] },
    {
      with: 'debounce',
      after: 'console.log((await queue.getDelayed()).map(({ data }) => data.text).join());',
      says: ['ab'],
    },
  ],
  'docs/guides/schedulers.md': [
    {
      with: "removeJobScheduler('cleanup')",
      after: 'console.log((await queue.getJobSchedulers()).map(({ key }) => key).join());',
      says: ['report'],
    },
    {
      with: 'pauseJobScheduler',
      after: 'console.log(await queue.getJobCounts("waiting", "delayed"));',
      says: ['{ waiting: 1, delayed: 1 }'],
    },
    {
      with: "overlap: 'skip'",
      after: `
        const { overlap, catchUp, jitter } = (await queue.getJobScheduler('import')) ?? {};
        console.log(overlap, catchUp, jitter);`,
      says: ['skip latest 5000'],
    },
  ],
  'docs/guides/flows.md': [
    {
      with: 'new FlowProducer',
      after: `
        const heard = new QueueEvents('albums', { connection, lastEventId: '0-0' });
        console.log((await job.waitUntilFinished(heard)).sort().join());`,
      says: ['a.png,b.png'],
    },
    {
      with: 'WaitingChildrenError',
      after: `
        new Worker('images', async (job) => job.data.file, { connection });
        const ended = once(worker, 'completed');
        await new Queue('albums', { connection }).add('publish', {});
        console.log((await ended)[1].join());`,
      says: ['c.png'],
    },
  ],
  'docs/guides/sandboxed-processors.md': [
    { with: '// processor.mjs', isPart: true },
    {
      with: 'new URL',
      after: `
        const ended = once(worker, 'completed');
        await queue.add('sum', { numbers: [1, 2] });
        console.log((await ended)[1]);`,
      says: ['3'],
    },
  ],
  'docs/guides/batches.md': [
    {
      with: 'one INSERT',
      before: "await new Queue('rows', { connection }).addBulk([1, 2].map((row) => ({ name: 'row', data: { row } })));",
      after: "console.log((await once(worker, 'completed'))[1]);",
      says: ['one INSERT for 2 rows', 'row 1'],
    },
    {
      with: 'setAsFailed',
      before: `
        const mails = new Queue('mails', { connection });
        await mails.addBulk([{ name: 'mail', data: { to: 'ana' } }, { name: 'mail', data: {} }]);`,
      after: `
        const failed = once(mailer, 'failed');
        console.log((await once(mailer, 'completed'))[1]);
        console.log((await failed)[1].message);`,
      says: ['sent to ana', 'no address'],
    },
  ],
  'docs/guides/cancelling.md': [
    { with: 'queue.cancelJob(', says: ['cancelled The job was cancelled: withdrawn'] },
    { with: 'queue.cancelJobs(', says: ['0'] },
  ],
  'docs/guides/observables.md': [
    {
      with: '@@observable',
      after: "await new Queue('ticks', { connection }).add('tick', {}); await once(worker, 'completed');",
      says: ['3'],
    },
  ],
  'docs/guides/deadlines.md': [
    {
      with: 'JobExpiredError',
      // the look that a worker takes when it starts may find the job first
      but: (text) => text.replace("'sent', { connection }", "'sent', { connection, skipStalledCheck: true }"),
      after: "await once(worker, 'failed');",
      says: ['too late: login-code'],
    },
  ],
  'docs/guides/timeouts.md': [
    {
      with: 'ttl: 5000',
      before: `
        const fetch = (_url: string, { signal }: { signal: AbortSignal | undefined }) => new Promise<{ status: number }>(
          (_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));`,
      but: (text) => text.replace('timeout: 2000', 'timeout: 200'),
      after: `
        const job = (await once(worker, 'failed'))[0];
        console.log(job.failedReason, job.attemptsStarted);`,
      says: ['Job page took longer than 200 ms 1'],
    },
    {
      with: 'killAfter',
      before: "await new Queue('pages', { connection }).add('page', {});",
      // `once` of Node would throw the error
      after: "await new Promise((done) => impatient.on('failed', (_, error) => done(console.log(error.message))));",
      says: ['never ends', /^The handler of job page \(id 1\) runs on/, 'Job page took longer than 100 ms'],
    },
  ],
  'docs/guides/events.md': [
    {
      with: "worker.on('active'",
      after: "const ended = once(worker, 'completed'); await queue.add('welcome', {}); await ended;",
      says: ['starts 1', '1 {}'],
    },
    {
      with: 'returnvalue',
      // it hears what happens from then on that it listens, of which nothing tells
      after: `setInterval(() => void queue.add('welcome', {}), 20); ${SENT} await once(events, 'completed');`,
    },
    { with: 'waitUntilFinished', before: SENT, says: ['sent'] },
  ],
  'docs/guides/telemetry.md': [
    {
      with: 'exportPrometheusMetrics',
      after: `
        await once(server, 'listening');
        const address = server.address();
        const answer = await fetch('http://127.0.0.1:' + (address instanceof Object && address.port));
        console.log((await answer.text()).includes('service="shop"'));`,
      says: ['true'],
    },
    { with: 'job.log', says: ["[ 'asked by the shop' ]"] },
  ],
  'docs/guides/length-limits.md': [
    {
      with: 'ERR_QUEUE_FULL',
      before: "const image = 'a.png'; const response = { status: (code) => ({ end: () => console.log(code) }) };",
      but: (text) =>
        text.replace('100_000', '1').replace('await queue.add', "await queue.add('first');\nawait queue.add"),
      says: ['503'],
    },
  ],
};
