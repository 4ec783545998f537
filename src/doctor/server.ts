/** Whether a server fits, judged by its answer to `INFO`. */

/** Worst first: it cannot be used, jobs may be lost, a hint, all is well. */
export type Verdict = 'unfit' | 'risk' | 'hint' | 'fit';

/** Field names are part of doctor's `--json` output. */
export interface ServerFinding {
  readonly id: 'version' | 'role' | 'loading' | 'eviction' | 'memory' | 'persistence' | 'cluster' | 'clients';
  readonly verdict: Verdict;
  readonly text: string;
}

type Info = (field: string) => string | undefined;

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
  const field: Info = (name) => fields.get(name);
  return [
    ...versionOf(field),
    ...roleOf(field),
    ...evictionOf(field),
    ...memoryOf(field),
    ...persistenceOf(field),
    ...clusterOf(field, isCluster),
    ...clientsOf(field),
  ];
}

function versionOf(field: Info): ServerFinding[] {
  const [valkey, redis] = [field('valkey_version'), field('redis_version')];
  const version = valkey ?? redis;
  if (version === undefined) return [{ id: 'version', verdict: 'risk', text: 'The server does not tell its version.' }];
  const name = valkey === undefined ? 'Redis' : 'Valkey';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isOld = major < 7 || (valkey !== undefined && major === 7 && minor < 2);
  const needed = 'Redis 7.0 or newer, or Valkey 7.2 or newer, is needed.';
  return [
    { id: 'version', verdict: isOld ? 'unfit' : 'fit', text: `${name} ${version}${isOld ? `: ${needed}` : '.'}` },
  ];
}

function roleOf(field: Info): ServerFinding[] {
  const findings: ServerFinding[] = [];
  const [role, loading] = [field('role'), field('loading')];
  if (role !== undefined && role !== 'master') {
    findings.push({
      id: 'role',
      verdict: 'unfit',
      text: 'It is a replica, which takes no writes: name the master, or --sentinel.',
    });
  }
  if (loading === '1')
    findings.push({ id: 'loading', verdict: 'risk', text: 'It is loading its data: ask again later.' });
  return findings;
}

function evictionOf(field: Info): ServerFinding[] {
  const policy = field('maxmemory_policy');
  if (policy === undefined) return [];
  if (policy === 'noeviction') return [{ id: 'eviction', verdict: 'fit', text: 'maxmemory-policy noeviction.' }];
  const text = `maxmemory-policy ${policy}: a server that runs full deletes jobs. CONFIG SET maxmemory-policy noeviction`;
  return [{ id: 'eviction', verdict: 'risk', text }];
}

function memoryOf(field: Info): ServerFinding[] {
  const [used, most, system] = ['used_memory', 'maxmemory', 'total_system_memory'].map((name) => Number(field(name)));
  if (used === undefined || most === undefined || !Number.isFinite(used) || !Number.isFinite(most)) return [];
  const of = most > 0 ? most : system;
  const share = of ? used / of : 0;
  const limit = most > 0 ? `of maxmemory ${size(most)}` : `and no maxmemory${system ? ` on ${size(system)}` : ''}`;
  const text = `${size(used)} used ${limit}`;
  if (share > 0.8)
    return [
      {
        id: 'memory',
        verdict: 'risk',
        text: `${text}: ${Math.round(share * 100)} %. When it is full, adds are refused.`,
      },
    ];
  if (most === 0)
    return [
      {
        id: 'memory',
        verdict: 'hint',
        text: `${text}: set one below what the machine has, so that adds are refused before the server is killed.`,
      },
    ];
  return [{ id: 'memory', verdict: 'fit', text: `${text}.` }];
}

function size(bytes: number): string {
  return bytes >= 2 ** 30 ? `${(bytes / 2 ** 30).toFixed(1)} GiB` : `${Math.round(bytes / 2 ** 20)} MiB`;
}

function persistenceOf(field: Info): ServerFinding[] {
  const aof = field('aof_enabled');
  if (aof === undefined) return [];
  const broken = field('aof_last_write_status') === 'err' || field('rdb_last_bgsave_status') === 'err';
  if (broken) return [{ id: 'persistence', verdict: 'risk', text: 'Its last write to disk failed: see its log.' }];
  if (aof === '1') return [{ id: 'persistence', verdict: 'fit', text: 'It keeps an append-only file.' }];
  const text =
    'No append-only file: jobs of the time since the last snapshot are lost with the server. appendonly yes keeps them.';
  return [{ id: 'persistence', verdict: 'risk', text }];
}

function clusterOf(field: Info, isCluster: boolean): ServerFinding[] {
  const enabled = field('cluster_enabled');
  if (enabled === undefined) return [];
  if ((enabled === '1') === isCluster) {
    return enabled === '1'
      ? [{ id: 'cluster', verdict: 'fit', text: 'It is a node of a cluster: each queue lies on one slot.' }]
      : [];
  }
  const text = isCluster
    ? 'It is no node of a cluster: leave out --cluster, and nodes in the connection.'
    : 'It is a node of a cluster: say --cluster, and give connection: new Cluster(nodes) or { nodes }.';
  return [{ id: 'cluster', verdict: 'unfit', text }];
}

function clientsOf(field: Info): ServerFinding[] {
  const [connected, most] = [Number(field('connected_clients')), Number(field('maxclients'))];
  if (!(most > 0) || !(connected / most > 0.8)) return [];
  return [
    {
      id: 'clients',
      verdict: 'risk',
      text: `${connected} of ${most} clients are connected: no more may soon be let in.`,
    },
  ];
}
