import type { Commands } from './commands.js';

/** What a tool learns of a queue's connection. */
export interface BackendClient {
  /** `ready` while there is a connection, `end` once it was closed. */
  readonly status: 'connecting' | 'ready' | 'end';
  /** The server's answer to `INFO`. */
  info(): Promise<string>;
}

/**
 * What `getBackend()` gives: as much as tools on top of BullMQ ask for. There is no datastore to be had here, for that
 * is the engine; what they would do with its keys has no meaning for ours.
 */
export class Backend {
  /** Resolves at once, whether there is a connection or not. */
  readonly client: Promise<BackendClient>;

  constructor(private readonly commands: Commands) {
    this.client = Promise.resolve({
      get status() {
        return commands.status;
      },
      info: async () => commands.native.info(),
    });
  }

  /** Resolves when the connection is usable. */
  waitUntilReady(): Promise<void> {
    return this.commands.ready();
  }
}
