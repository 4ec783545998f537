import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { Queue, type IRedisClient, type RedisClient, type RedisConnection } from 'bullmq';

const queue = new Queue('mail');
const adapter = new BullMQAdapter(queue);
export const client: RedisClient | null = await adapter.getClient();
export const same: IRedisClient | null = client;
export const clientOf = (connection: RedisConnection): Promise<RedisClient> => connection.client;
export const options: Parameters<typeof createBullBoard>[0]['queues'] = [adapter];
