import { mkdir, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { succeed } from './command.ts';
import type { Daemons } from './daemons.ts';
import { freePort } from './free-port.ts';
import { type Kind, type Setup, startObjectStore, type TestObjectStore } from './object-stores.ts';

/** Debian's Python, which has the modules of Swift. The PATH may have another one first. */
const PYTHON = '/usr/bin/python3';

const SWIFT: Kind = { name: 'swift', accessKey: 'test:tester', front: 'swift-proxy-server', prepare };

/**
 * Starts OpenStack Swift with its S3 API: a proxy, one server each for accounts, containers and objects, and the memcached
 * without which tempauth makes no bucket.
 */
export function startSwift(): Promise<TestObjectStore> {
  return startObjectStore(SWIFT);
}

interface Backend {
  readonly kind: 'account' | 'container' | 'object';
  readonly port: number;
}

async function prepare(directory: string, port: number, secretKey: string): Promise<Setup> {
  const backends: readonly Backend[] = [
    { kind: 'account', port: await freePort() },
    { kind: 'container', port: await freePort() },
    { kind: 'object', port: await freePort() },
  ];
  const cachePort = await freePort();
  await mkdir(join(directory, 'devices/disk'), { recursive: true });
  const write = (name: string, text: string) => writeFile(join(directory, `${name}.conf`), text);
  await write('swift', '[swift-hash]\nswift_hash_path_suffix = test\n');
  await write('proxy', proxyConfiguration(directory, port, cachePort, secretKey));
  for (const backend of backends) await write(backend.kind, backendConfiguration(directory, backend));
  await succeed(PYTHON, ['-c', MAKE_RINGS, directory, ...backends.map(({ port }) => String(port))]);
  return {
    async launch(daemons: Daemons) {
      daemons.start('memcached', ['-l', '127.0.0.1', '-p', String(cachePort), '-u', userInfo().username]);
      for (const kind of ['proxy', ...backends.map(({ kind }) => kind)])
        daemons.start(`swift-${kind}-server`, [join(directory, `${kind}.conf`), '--verbose']);
      for (const server of [{ port }, ...backends]) await daemons.answer(server.port);
    },
  };
}

/** Writes the rings, the files that say which server has what. Nine runs of swift-ring-builder would load Python each. */
const MAKE_RINGS = `
import sys
from swift.common.ring import RingBuilder
for kind, port in zip(('account', 'container', 'object'), sys.argv[2:]):
    ring = RingBuilder(part_power=4, replicas=1, min_part_hours=0)
    ring.add_dev({'region': 1, 'zone': 1, 'ip': '127.0.0.1', 'port': int(port), 'device': 'disk', 'weight': 1})
    ring.rebalance()
    ring.get_ring().save(f'{sys.argv[1]}/{kind}.ring.gz')
`;

/** Returns the settings that all servers share. */
function common(directory: string, port: number): string {
  return `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
# One process, which the test can kill.
workers = 0
user = ${userInfo().username}
swift_dir = ${directory}
log_level = WARNING
`;
}

/**
 * How long a server waits for another, in s. With Swift's own few seconds, a busy machine makes the proxy answer 503, and
 * lists a new object only later.
 */
const PATIENCE = `
conn_timeout = 60
node_timeout = 300
`;

function backendConfiguration(directory: string, { kind, port }: Backend): string {
  return `${common(directory, port)}
devices = ${directory}/devices
mount_check = false
disable_fallocate = true
# How long a new object waits for its container's listing, in s.
container_update_timeout = 300
[pipeline:main]
pipeline = ${kind}-server
[app:${kind}-server]
use = egg:swift#${kind}
${PATIENCE}`;
}

const FILTERS = [
  ...['catch_errors', 'gatekeeper', 'cache', 'listing_formats', 's3api', 'tempauth', 'copy', 'slo'],
];

/** The filter s3api hands the signature to tempauth, so it comes before. */
function proxyConfiguration(directory: string, port: number, cachePort: number, secretKey: string): string {
  const filters = FILTERS.filter((name) => !['cache', 'tempauth'].includes(name)).map(
    (name) => `[filter:${name}]\nuse = egg:swift#${name}`,
  );
  return `${common(directory, port)}
client_timeout = 300
[pipeline:main]
pipeline = ${FILTERS.join(' ')} proxy-server
${filters.join('\n')}
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${cachePort}
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = ${secretKey} .admin
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
${PATIENCE}`;
}
