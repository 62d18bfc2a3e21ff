import { redisStateContract } from '../contract/state-redis.contract.ts';
import { startCluster } from '../support/redis-groups.ts';

redisStateContract('a Redis cluster', () => startCluster());
