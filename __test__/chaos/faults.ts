/** What each fault does, and which repeats it excuses. */
import type { Redis } from 'ioredis';
import type { Queue } from '../../src/index.js';
import type { OwnServer } from '../support/own-server.js';
import type { Random } from '../support/random.js';
import { closedPort } from '../support/redis.js';
import { unlessLoading } from '../support/replication.js';
import { sleep, until } from '../support/waiting.js';
import { untold } from './ledger.js';
import type { Member } from './member.js';
import type { Replicated, Servers, Topology } from './servers.js';
import type { Middle, Way } from './way.js';

/** How long leases of a run last. They are renewed each quarter of that. */
export const LEASE_MS = 3_000;
/** Pause between two scans for workers that are gone. */
export const SCAN_MS = 500;

/** One fault that was injected. Times are epoch ms. */
export interface Injected {
  readonly kind: FaultKind;
  /** Name of the member it hit, `observer` for the QueueEvents, `all` for everybody. */
  target: string;
  /** The life of the member that was hit. */
  life: number;
  at: number;
  /** When what was taken away was there again. */
  returned: number;
  /** A master was replaced without a warning: its replica had heard of all that was acknowledged up to here, ... */
  heard?: number;
  /** ... and after this it acknowledged nothing more. */
  gone?: number;
  /** Whether others may have been under way. */
  readonly mixed: boolean;
  /** What was special about it. */
  detail: string;
}

/** What faults are done to. */
export interface World {
  /** Goes past every fault of ways. */
  readonly queue: Queue;
  readonly servers: Servers;
  readonly workers: readonly Member[];
  readonly producers: readonly Member[];
  /** The way of the QueueEvents that listens through all of it. */
  readonly observed: Way;
}

interface Fault {
  /** One for the table of docs/chaos.md. */
  readonly title: string;
  /** Where it can happen, if not everywhere. */
  readonly only?: readonly Topology[];
  /** Takes effect for the whole server: no two of those at a time. */
  readonly wide?: true;
  /** What a worker that it hit may do again: what was in flight, or what was in flight when it lasted about as long as a lease. */
  readonly excuses?: 'in flight' | 'lease over';
  inject(world: World, random: Random, injected: Injected): Promise<void>;
}

export type FaultKind = keyof typeof faults;

export const faults = {
  'kill-worker': {
    title: 'SIGKILL of a worker',
    excuses: 'in flight',
    inject: ({ workers }, random, injected) =>
      withMember(workers, random, injected, async (member) => {
        begin(injected);
        await member.kill();
        await sleep(random.next(800));
        await member.start();
      }),
  },
  'kill-producer': {
    title: 'SIGKILL of a producer',
    inject: ({ producers }, random, injected) =>
      withMember(producers, random, injected, async (member) => {
        begin(injected);
        await member.kill();
        await sleep(random.next(800));
        await member.start({ SEED: random.next(1e9), MIX: 'anything', UNTOLD: untold(member.ledgerOf(member.life)) });
      }),
  },
  'close-worker': {
    title: 'a worker closes, and another takes its place',
    inject: ({ workers }, random, injected) =>
      withMember(workers, random, injected, async (member) => {
        begin(injected);
        await member.end('close', 120_000);
        await member.start();
      }),
  },
  'freeze-worker': {
    title: 'a worker stands still (SIGSTOP) for longer than its lease',
    excuses: 'lease over',
    inject: ({ workers }, random, injected) =>
      withMember(workers, random, injected, async (member) => {
        begin(injected);
        member.signal('SIGSTOP');
        await sleep(LEASE_MS + SCAN_MS + random.next(500));
        member.signal('SIGCONT');
      }),
  },
  'block-loop': {
    title: 'event loop blocked for longer than the lease',
    inject: ({ workers }, random, injected) =>
      withMember(workers, random, injected, async (member) => {
        const before = member.said('unblocked');
        const ms = LEASE_MS * 1.2 + random.next(500);
        begin(injected);
        member.tell(`block ${Math.round(ms)}`);
        await member.says('unblocked', before, 60_000);
      }),
  },
  'jump-clock': {
    title: "a worker's clock jumps by 1 to 8 s",
    inject: ({ workers }, random, injected) =>
      withMember(workers, random, injected, async (member) => {
        const jump = (1_000 + random.next(7_000)) * (random.next(2) ? 1 : -1);
        injected.detail = `${jump} ms`;
        begin(injected);
        member.tell(`clock ${jump}`);
        await sleep(500 + random.next(1_500));
        member.tell('clock 0');
      }),
  },
  cut: {
    title: 'connections cut',
    inject: async (world, random, injected) => {
      const ways = pickWays(world, random, injected);
      begin(injected);
      for (const way of ways) way.cut();
    },
  },
  'cut-one-side': {
    title: 'connections cut, which the server notices later',
    inject: async (world, random, injected) => {
      const ways = pickWays(world, random, injected);
      begin(injected);
      for (const way of ways) way.orphan();
    },
  },
  refuse: {
    title: 'connections cut and refused for a while',
    excuses: 'lease over',
    inject: async (world, random, injected) => {
      const ways = pickWays(world, random, injected);
      begin(injected);
      await Promise.all(ways.map((way) => way.close()));
      await sleep(absence(random));
      await Promise.all(ways.map((way) => way.open()));
    },
  },
  stall: {
    title: 'connections stalled: no byte arrives for a while',
    excuses: 'lease over',
    inject: async (world, random, injected) => {
      const ways = pickWays(world, random, injected);
      begin(injected);
      for (const way of ways) way.stall();
      await sleep(absence(random));
      for (const way of ways) way.flow();
    },
  },
  'reset-request': {
    title: 'connection reset in the middle of a request',
    inject: (world, random, injected) => breakIn('request', world, random, injected),
  },
  'reset-reply': {
    title: 'connection reset in the middle of a reply',
    inject: (world, random, injected) => breakIn('reply', world, random, injected),
  },
  'kill-server': {
    title: 'Redis killed and started again (AOF, `appendfsync always`)',
    only: ['standalone'],
    wide: true,
    excuses: 'lease over',
    inject: async ({ servers: { single } }, random, injected) => {
      begin(injected);
      await single?.kill();
      await sleep(absence(random));
      await single?.start();
    },
  },
  'client-kill': {
    title: '`CLIENT KILL` of all connections',
    inject: async (world, _, injected) => {
      begin(injected);
      await tellAll(world, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    },
  },
  'script-flush': {
    title: '`SCRIPT FLUSH` and `FUNCTION FLUSH`',
    inject: async (world, _, injected) => {
      begin(injected);
      await tellAll(world, 'SCRIPT', 'FLUSH', 'SYNC');
      await tellMasters(world, 'FUNCTION', 'FLUSH', 'SYNC');
    },
  },
  'out-of-memory': {
    title: '`maxmemory` reached',
    wide: true,
    inject: async (world, random, injected) => {
      begin(injected);
      await tellAll(world, 'CONFIG', 'SET', 'maxmemory', '1mb');
      await sleep(300 + random.next(1_200));
      await tellAll(world, 'CONFIG', 'SET', 'maxmemory', '0');
    },
  },
  'full-queue': {
    title: 'the maximum length of the queue is reached',
    // a limit that is set or lifted just before a master is killed may be gone with it
    only: ['standalone'],
    // a server that is full or read-only refuses this, too
    wide: true,
    inject: async ({ queue }, random, injected) => {
      begin(injected);
      await queue.setMaxLength(1);
      await sleep(300 + random.next(1_200));
      await queue.removeMaxLength();
    },
  },
  'read-only': {
    title: 'the server is a read-only replica for a while',
    only: ['standalone'],
    wide: true,
    excuses: 'lease over',
    inject: async (world, random, injected) => {
      const nobody = await closedPort();
      begin(injected);
      await tellAll(world, 'REPLICAOF', '127.0.0.1', nobody);
      await sleep(300 + random.next(1_200));
      await tellAll(world, 'REPLICAOF', 'NO', 'ONE');
    },
  },
  failover: {
    title: 'planned failover: writes wait until the replica has everything and takes over',
    only: ['sentinel', 'cluster'],
    wide: true,
    excuses: 'lease over',
    inject: ({ servers }, _, injected) =>
      withReplica(servers, async (replicated) => {
        await replicated.calm();
        begin(injected);
        await replicated.failover();
        injected.returned = Date.now();
      }),
  },
  'kill-master': {
    title: 'SIGKILL of the master; its replica takes over',
    only: ['sentinel', 'cluster'],
    wide: true,
    excuses: 'lease over',
    inject: ({ servers }, _, injected) => replaceMaster(servers, injected, (master) => master.kill()),
  },
  'freeze-master': {
    title: 'the master stands still (SIGSTOP); its replica takes over',
    only: ['sentinel', 'cluster'],
    wide: true,
    excuses: 'lease over',
    inject: ({ servers }, _, injected) => replaceMaster(servers, injected, (master) => master.freeze()),
  },
  'move-slot': {
    title: "the queue's slot moves to another node",
    only: ['cluster'],
    wide: true,
    excuses: 'lease over',
    inject: async ({ servers }, _, injected) => {
      begin(injected);
      await servers.moveSlot?.();
    },
  },
} as const satisfies Record<string, Fault>;

/** The faults that can happen to such servers. */
export function faultKindsOf(topology: Topology): FaultKind[] {
  const kinds = Object.keys(faults) as FaultKind[];
  return kinds.filter((kind) => faultOf(kind).only?.includes(topology) ?? true);
}

export function faultOf(kind: FaultKind): Fault {
  return faults[kind];
}

/** Injects one fault; gives what there is to say about it when all is there again. */
export async function inject(kind: FaultKind, world: World, random: Random, mixed: boolean): Promise<Injected> {
  const injected: Injected = { kind, target: 'all', life: 0, at: 0, returned: 0, mixed, detail: '' };
  await faults[kind].inject(world, random, injected);
  injected.returned ||= Math.max(injected.at, Date.now());
  return injected;
}

function begin(injected: Injected): void {
  injected.at = Date.now();
}

/** Tells a server, once it has taken in what its master has: until then it refuses. */
async function tell(admin: Redis, command: string, ...args: (string | number)[]): Promise<void> {
  const isTold = () => unlessLoading(admin.call(command, ...args).then(() => true));
  await until(`a server to take ${command}`, isTold);
}

async function tellAll({ servers }: World, command: string, ...args: (string | number)[]): Promise<void> {
  await Promise.all(servers.admins.map((admin) => tell(admin, command, ...args)));
}

/** The same, but for servers that are replicas at the moment: what they refuse their master tells them. */
async function tellMasters({ servers }: World, command: string, ...args: string[]): Promise<void> {
  const refused = (error: Error): void => {
    if (!error.message.startsWith('READONLY')) throw error;
  };
  await Promise.all(servers.admins.map((admin) => tell(admin, command, ...args).catch(refused)));
}

async function withReplica({ replicated }: Servers, body: (replicated: Replicated) => Promise<void>): Promise<void> {
  if (!replicated) return;
  await body(replicated);
  await replicated.mend();
}

/** What happens to the master ends it; that is when it is `gone`. */
function replaceMaster(servers: Servers, injected: Injected, happens: (master: OwnServer) => unknown): Promise<void> {
  return withReplica(servers, async (replicated) => {
    injected.heard = await replicated.heard();
    begin(injected);
    await replicated.replaceMaster(async (master) => {
      await happens(master);
      injected.gone = Date.now();
    });
    injected.returned = Date.now();
  });
}

/** Mostly short, sometimes longer than a lease. */
function absence(random: Random): number {
  return random.next(5) === 0 ? LEASE_MS + SCAN_MS + random.next(1_000) : 50 + random.next(1_200);
}

async function withMember(
  members: readonly Member[],
  random: Random,
  injected: Injected,
  body: (member: Member) => Promise<void>,
): Promise<void> {
  const free = members.filter(({ taken }) => !taken);
  const member = free[random.next(free.length)];
  if (!member) return;
  Object.assign(injected, { target: member.name, life: member.life });
  member.taken = true;
  try {
    await body(member);
  } finally {
    member.taken = false;
  }
}

/** The ways of everybody, or of one. */
function pickWays({ workers, producers, observed }: World, random: Random, injected: Injected): Way[] {
  const members = [...workers, ...producers];
  const dice = random.next(10);
  if (dice < 4) return [...members.map(({ way }) => way), observed];
  if (dice === 4) {
    injected.target = 'observer';
    return [observed];
  }
  const member = members[random.next(members.length)];
  Object.assign(injected, { target: member.name, life: member.life });
  return [member.way];
}

async function breakIn(middle: Middle, world: World, random: Random, injected: Injected): Promise<void> {
  const [way] = pickWays(world, random, injected).slice(-1) as [Way];
  if (injected.target === 'all') injected.target = 'observer';
  const broken = way.breakIn(middle, 2_000);
  void broken.then(() => begin(injected));
  if (!(await broken)) injected.at = 0;
}
