/** Which server holds the queues. */
export type DatabaseType = 'redis' | 'dragonfly' | 'valkey';
