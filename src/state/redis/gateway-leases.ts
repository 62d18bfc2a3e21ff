import type { GatewayLeases } from '../gateway-leases.ts';
import { textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';

/** The leases of a drive's gateways: a sorted set by the end of each. */
export function redisGatewayLeases({ connection, key }: DriveStore, gateway: string): GatewayLeases {
  const gateways = key('gateways');
  return {
    gateway,
    renew: async (leaseMs) => textsOf(await connection.script(RENEW, [gateways], [gateway, String(leaseMs)])),
    async end() {
      await connection.command('ZREM', gateways, gateway);
    },
  };
}

// By the clock of Redis, which all gateways share.
const RENEW = `
if redis.replicate_commands then redis.replicate_commands() end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[2]), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local alive = redis.call('ZRANGE', KEYS[1], 0, -1)
table.sort(alive)
return alive`;
