/** Which server it is, and of which version, as BullMQ 5's objects tell. */
import type { DatabaseType } from '../types/database-type.js';
import type { Commands } from '../connection/commands.js';

/** How servers that are not Redis tell their version in `INFO`; what they call `redis_version` is the Redis they stand for. */
const KINDS: [DatabaseType, RegExp][] = [
  ['dragonfly', /^dragonfly_version:(?:df-)?v?(\S+)/m],
  ['valkey', /^valkey_version:(\S+)/m],
  ['redis', /^redis_version:(\S+)/m],
];

export class ServerKind {
  /** Undefined until the server was asked. */
  version: string | undefined = undefined;
  type: DatabaseType = 'redis';
  private asking: Promise<void> | undefined = undefined;

  constructor(private readonly commands: Commands) {}

  /** Asks, once; a server that gives no answer leaves things as they are. */
  ask(): Promise<void> {
    return (this.asking ??= this.read().catch(() => {
      this.asking = undefined;
    }));
  }

  private async read(): Promise<void> {
    await this.commands.ready();
    const info = await this.commands.native.info();
    for (const [type, pattern] of KINDS) {
      const version = pattern.exec(info)?.[1];
      if (version === undefined) continue;
      [this.type, this.version] = [type, version];
      return;
    }
  }
}
