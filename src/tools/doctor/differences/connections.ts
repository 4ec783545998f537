import { differencesOf } from '../difference.js';

/** What differs in connections, in closing, and in what lies in Redis. */
export const connections = differencesOf('connections', [
  {
    id: 'keys-of-its-own',
    title: 'Keys in Redis',
    bullmq: '`<prefix>:<queue>:*`, with a hash a job.',
    chasquimq:
      '`{<prefix>:<queue>}:*`, by default `{bull:<queue>}:*`; a prefix or a name with a hash tag of its own keeps it: `{app}:<queue>:chasqui:*`, `bull:{mail}:chasqui:*`. Jobs of a BullMQ queue are not seen, and programs that read its keys or its event stream with raw commands find nothing.',
    why: "Many jobs lie in one entry, and a queue lies on one hash slot, BullMQ's where BullMQ can work in a cluster.",
    impact: 'breaking',
  },
  {
    id: 'server-7',
    title: 'Server',
    bullmq:
      'Takes Redis 5 and newer. The warning about the eviction policy comes once for each connection; ioredis warns of a password that the server does not need.',
    chasquimq:
      '7.0 is the oldest. The warning about the eviction policy comes once for a `Worker`, not once for each of its connections; nothing is said of such a password.',
    why: 'Older servers are not tested.',
    impact: 'breaking',
  },
  {
    id: 'ioredis-is-read',
    title: 'An ioredis instance',
    bullmq: 'Is the connection.',
    chasquimq:
      "Is read, not used: connections are the engine's. Changes made to it later are not seen. Its end ends the queues and flow producers that were given it, as there, and for good: they do not come back with it.",
    why: 'There is no JavaScript client at run time.',
    impact: 'check',
  },
  {
    id: 'workers-share-a-connection',
    title: 'Connections of a process',
    bullmq:
      'Each object has its own, unless it is given an instance; a worker has one more. `getWorkers` has an `id` for each worker.',
    chasquimq:
      "Those of a thread share them. `getWorkers` has an entry for each worker; `id`, `addr`, `age` and the like are its process's connection's. `CLIENT LIST` shows the names of such workers in one line, with `|` between them.",
    why: 'A process with a thousand queues has one connection for all their calls.',
    impact: 'check',
  },
  {
    id: 'other-drivers',
    title: 'Clients of node-redis, Bun and Valkey GLIDE',
    bullmq: 'Are taken as connections.',
    chasquimq: '`NotSupportedError`.',
    why: 'The engine brings its own client; the options of these cannot be read yet.',
    impact: 'breaking',
    detect: [{ call: 'createNodeRedisClient' }, { call: 'createBunRedisClient' }, { call: 'createValkeyGlideClient' }],
  },
  {
    id: 'backend-factory',
    title: 'A `backendFactory`, and exports of backends and drivers',
    bullmq: 'The datastore can be exchanged, for PostgreSQL for example.',
    chasquimq:
      'A `backendFactory` that gives anything but the `getBackend()` of another queue or flow producer is refused with a `NotSupportedError`. Backends, drivers and inner helpers are not exported.',
    why: 'The datastore cannot be exchanged; the batches are the point.',
    impact: 'breaking',
    detect: [
      { call: 'setDefaultBackendFactory' },
      { call: 'withBackend' },
      { call: 'createPostgresBackend' },
      { call: 'createRedisBackend' },
    ],
  },
  {
    id: 'key-prefix-option',
    title: '`keyPrefix` in connection options',
    bullmq: 'An instance with one is refused; options with one are taken.',
    chasquimq: "Refused with BullMQ's message, in options as well.",
    why: 'The queue has a `prefix` for this.',
    impact: 'breaking',
    detect: [{ option: 'keyPrefix' }],
  },
  {
    id: 'connection-options-without-effect',
    title: '`reconnectOnError`, `maxRetriesPerRequest`, `lazyConnect`, `keepAlive` and the like',
    bullmq: 'Are options of its ioredis client.',
    chasquimq:
      'Have no effect. The full list, with reasons, is in `src/connection/known-options.ts`. What the engine cannot carry out throws a `NotSupportedError` that names it.',
    why: 'The engine owns its connections, with TCP keepalive as the system has it.',
    impact: 'check',
    detect: [
      { option: 'reconnectOnError' },
      { option: 'maxRetriesPerRequest' },
      { option: 'lazyConnect' },
      { option: 'keepAlive' },
      { option: 'enableReadyCheck' },
      { option: 'noDelay' },
      { option: 'enableAutoPipelining' },
      { option: 'commandTimeout' },
      { option: 'socketTimeout' },
      { option: 'useSRVRecords' },
      { option: 'readOnly' },
    ],
  },
  {
    id: 'retry-strategy',
    title: '`runRetryDelay`, `retryStrategy`',
    bullmq: 'Say when to connect again.',
    chasquimq:
      'The engine connects again after 50 ms, doubled up to 500 ms. `runRetryDelay` has no effect; `retryStrategy` only says when to give up.',
    why: 'Work goes on as soon as the server is back.',
    impact: 'check',
    detect: [{ option: 'runRetryDelay' }, { option: 'retryStrategy' }],
  },
  {
    id: 'refused-for-now',
    title: 'A server that lets nobody write: `READONLY`, `NOAUTH`, `BUSY`',
    bullmq:
      "A call rejects at once with the server's message; a `db` that the server does not have is reported once, and database 0 is used.",
    chasquimq:
      'A call waits until the server takes it; meanwhile `error` events say why it does not. The same holds for a `db` that the server does not have.',
    why: 'After a failover the next connection leads to the new master, and no job is refused or lost.',
    impact: 'check',
  },
  {
    id: 'reply-error-command',
    title: '`command` of a `ReplyError`',
    bullmq: 'Has all arguments: data of jobs, the text of a script, and the password of a login that was refused.',
    chasquimq:
      'Has those of a function or script up to the key, none of more than 256 bytes. An error of connecting has no `command`.',
    why: 'Errors go into logs.',
    impact: 'none',
  },
  {
    id: 'close-without-a-server',
    title: '`close()`',
    bullmq: 'Of a worker or QueueEvents may wait for a server that was never reachable.',
    chasquimq:
      'Of a worker or QueueEvents resolves also when the server was never reachable, and when the password is wrong.',
    why: 'A shutdown must end.',
    impact: 'none',
  },
  {
    id: 'close-with-redis-gone',
    title: '`close()` with Redis gone',
    bullmq: 'Waits for the server.',
    chasquimq:
      'Gives up after about 2 s. A worker that has outcomes to record waits for a server that is gone for `lockDuration`; then other workers run those jobs again.',
    why: 'A shutdown must end.',
    impact: 'none',
  },
  {
    id: 'closed-errors',
    title: 'Errors of what is closed',
    bullmq: 'On ioredis, calls reject with a plain `Error` of the same message.',
    chasquimq: 'Are of the exported class `ConnectionClosedError`.',
    why: "`instanceof` works, as with BullMQ's other clients.",
    impact: 'none',
  },
  {
    id: 'flow-producer-close',
    title: '`close()` of a FlowProducer',
    bullmq: 'Flows that are being added reject, and may be added or not.',
    chasquimq: 'Waits for flows that are being added.',
    why: 'It does so for every add.',
    impact: 'none',
  },
]);
