import { redisStateContract } from '../contract/state-redis.contract.ts';
import { startRedis } from '../support/redis.ts';

redisStateContract('Redis', async () => {
  const redis = await startRedis();
  return { url: redis.url, servers: [redis], close: () => redis.close() };
});
