/** Whether a server fits, judged by its answer to `INFO`, and by who may load functions there. */

/** Worst first: it cannot be used, jobs may be lost, a hint, all is well. */
export type Verdict = 'unfit' | 'risk' | 'hint' | 'fit';

/** Field names are part of doctor's `--json` output. */
export interface ServerFinding {
  readonly id: keyof typeof JUDGES | 'loaders';
  readonly verdict: Verdict;
  readonly text: string;
}

type Info = (field: string) => string | undefined;

/** Nothing is said of what the server does not tell. */
type Judgement = [verdict: Verdict, text: string] | undefined;

/** In the order in which they are told. */
const JUDGES = { version, role, loading, eviction, memory, persistence, cluster, clients };

/**
 * @param info the answer; empty where the user may not ask
 * @param isCluster how the server is used
 */
export function judgeServer(info: string, isCluster: boolean): ServerFinding[] {
  const fields = new Map<string, string>();
  for (const line of info.split(/\r?\n/)) {
    const at = line.indexOf(':');
    if (at > 0 && !line.startsWith('#')) fields.set(line.slice(0, at), line.slice(at + 1));
  }
  return (Object.keys(JUDGES) as (keyof typeof JUDGES)[]).flatMap((id) => {
    const judgement = JUDGES[id]((field) => fields.get(field), isCluster);
    return judgement ? [{ id, verdict: judgement[0], text: judgement[1] }] : [];
  });
}

/** @param loaders users who may load functions; none where nobody tells */
export function judgeLoaders(loaders: readonly string[]): ServerFinding[] {
  if (loaders.length < 2) return [];
  const names = `${loaders.slice(0, -1).join(', ')} and ${loaders.at(-1)}`;
  const text =
    `The users ${names} may load functions: each can replace those that the others call, whatever keys they may read. ` +
    'Where they do not trust each other: chasquimq library load, and for all but administrators -function|load.';
  return [{ id: 'loaders', verdict: 'hint', text }];
}

function version(field: Info): Judgement {
  const [valkey, redis] = [field('valkey_version'), field('redis_version')];
  const version = valkey ?? redis;
  if (version === undefined) return ['risk', 'The server does not tell its version.'];
  const name = valkey === undefined ? 'Redis' : 'Valkey';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < 7 || (valkey !== undefined && major === 7 && minor < 2);
  if (!isOld) return ['fit', `${name} ${version}.`];
  return ['unfit', `${name} ${version}: Redis 7.0 or newer, or Valkey 7.2 or newer, is needed.`];
}

function role(field: Info): Judgement {
  const role = field('role');
  if (role === undefined || role === 'master') return undefined;
  return ['unfit', 'It is a replica, which takes no writes: name the master, or --sentinel.'];
}

function loading(field: Info): Judgement {
  return field('loading') === '1' ? ['risk', 'It is loading its data: ask again later.'] : undefined;
}

function eviction(field: Info): Judgement {
  const policy = field('maxmemory_policy');
  if (policy === undefined) return undefined;
  if (policy === 'noeviction') return ['fit', 'maxmemory-policy noeviction.'];
  return [
    'risk',
    `maxmemory-policy ${policy}: a server that runs full deletes jobs. CONFIG SET maxmemory-policy noeviction`,
  ];
}

function memory(field: Info): Judgement {
  const [used, most, system] = ['used_memory', 'maxmemory', 'total_system_memory'].map((name) => Number(field(name)));
  if (!Number.isFinite(used) || !Number.isFinite(most)) return undefined;
  const of = most > 0 ? most : system;
  const share = of ? used / of : 0;
  const limit = most > 0 ? `of maxmemory ${size(most)}` : `and no maxmemory${system ? ` on ${size(system)}` : ''}`;
  const text = `${size(used)} used ${limit}`;
  if (share > 0.8) return ['risk', `${text}: ${Math.round(share * 100)} %. When it is full, adds are refused.`];
  if (most > 0) return ['fit', `${text}.`];
  return ['hint', `${text}: set one below what the machine has, so that adds are refused before the server is killed.`];
}

function size(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}

function persistence(field: Info): Judgement {
  const aof = field('aof_enabled');
  if (aof === undefined) return undefined;
  const broken = field('aof_last_write_status') === 'err' || field('rdb_last_bgsave_status') === 'err';
  if (broken) return ['risk', 'Its last write to disk failed: see its log.'];
  if (aof === '1') return ['fit', 'It keeps an append-only file.'];
  return [
    'risk',
    'No append-only file: jobs of the time since the last snapshot are lost with the server. appendonly yes keeps them.',
  ];
}

function cluster(field: Info, isCluster: boolean): Judgement {
  const enabled = field('cluster_enabled');
  if (enabled === undefined) return undefined;
  if ((enabled === '1') === isCluster) {
    return isCluster ? ['fit', 'It is a node of a cluster: each queue lies on one slot.'] : undefined;
  }
  const text = isCluster
    ? 'It is no node of a cluster: leave out --cluster, and nodes in the connection.'
    : 'It is a node of a cluster: say --cluster, and give connection: new Cluster(nodes) or { nodes }.';
  return ['unfit', text];
}

function clients(field: Info): Judgement {
  const [connected, most] = [Number(field('connected_clients')), Number(field('maxclients'))];
  if (!(most > 0) || !(connected / most > 0.8)) return undefined;
  return ['risk', `${connected} of ${most} clients are connected: no more may soon be let in.`];
}
