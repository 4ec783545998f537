import type { Cluster, Redis } from 'ioredis';
import type { ConnectionSettings } from '../server.js';

/** What both libraries take as their `connection`. */
export type Connection = Omit<ConnectionSettings, 'nodes'> | Redis | Cluster;

/** The settings as they are; in a Cluster a client, which whoever asks for it disconnects. */
export function connectionTo(settings: ConnectionSettings): Connection;
