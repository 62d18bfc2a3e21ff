import { redisStateContract } from '../contract/state-redis.contract.ts';
import { startSentinels } from '../support/redis-groups.ts';

redisStateContract('Redis with Sentinels', () => startSentinels());
