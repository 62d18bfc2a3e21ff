/** The settings of several gateways that share one Redis. */
export const REDIS_OPTIONS = [
  {
    name: 'redis',
    variable: 'DAVGATE_REDIS_URL',
    value: 'URL',
    help: 'Redis in which several gateways share locks, properties and app passwords: redis[s]://[USER:PASSWORD@]HOST[:PORT][/NUMBER], redis[s]+sentinel://[USER:PASSWORD@]HOST[:PORT],…/PRIMARY[/NUMBER] or redis[s]+cluster://[USER:PASSWORD@]HOST[:PORT],…',
  },
  {
    name: 'coherence',
    variable: 'DAVGATE_COHERENCE',
    value: 'strict|feed',
    default: 'strict',
    help: 'with --redis: whether a request waits until its gateway shows what every other one has acknowledged (strict), or may be late by a moment (feed), which saves a call of Redis for each request',
  },
  {
    name: 'redis-volatile',
    variable: 'DAVGATE_REDIS_VOLATILE',
    help: 'use a Redis without "appendonly yes", which forgets locks, properties, local files, app passwords, links for uploads and empty files that wait for their content when it stops',
  },
] as const;
