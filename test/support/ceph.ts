import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { succeed } from './command.ts';
import type { Daemons } from './daemons.ts';
import { freePort } from './free-port.ts';
import { type Kind, type Setup, startObjectStore, type TestObjectStore } from './object-stores.ts';

/** Capacity of the object store, in bytes. Its file is sparse: an empty one takes 40 MB. */
const CAPACITY = 4 * 1024 ** 3;

const CEPH: Kind = { name: 'ceph', accessKey: 'davgate', front: 'radosgw', prepare };

/**
 * Starts Ceph's object gateway on a monitor and one BlueStore. It works without a manager, which only reports and
 * balances.
 */
export function startCeph(): Promise<TestObjectStore> {
  return startObjectStore(CEPH);
}

async function prepare(directory: string, port: number, secretKey: string): Promise<Setup> {
  const fsid = randomUUID();
  const monitor = `[v2:127.0.0.1:${await freePort()}/0]`;
  const file = join(directory, 'ceph.conf');
  await writeFile(file, configuration(directory, fsid, monitor, port));
  for (const name of ['monitor', 'osd', 'gateway']) await mkdir(join(directory, name));
  const map = join(directory, 'monitors');
  await succeed('monmaptool', ['--create', '--fsid', fsid, '--addv', 'a', monitor, map]);
  await succeed('ceph-mon', ['-c', file, '-i', 'a', '--mkfs', '--monmap', map]);
  await succeed('ceph-osd', ['-c', file, '-i', '0', '--mkfs', '--no-mon-config', '--osd-uuid', randomUUID()]);
  return {
    async launch(daemons: Daemons) {
      daemons.start('ceph-mon', ['-c', file, '-i', 'a', '-f']);
      daemons.start('ceph-osd', ['-c', file, '-i', '0', '-f']);
      daemons.start('radosgw', ['-c', file, '-n', 'client.gateway', '-f']);
      await daemons.answer(port);
    },
    async createUser() {
      const keys = ['--access-key', CEPH.accessKey, '--secret-key', secretKey];
      await succeed('radosgw-admin', [
        ...['-c', file, 'user', 'create', '--uid', 'tester', '--display-name', 'tester', ...keys],
      ]);
    },
  };
}

/**
 * Returns the settings of all daemons. The object store chooses its ports itself, of 6800 to 7300, because it takes four in a
 * row.
 */
function configuration(directory: string, fsid: string, monitor: string, port: number): string {
  return `[global]
fsid = ${fsid}
mon_host = ${monitor}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
# The gateway asks for encryption by default, which needs the keys of cephx.
ms_mon_client_mode = crc
ms_bind_msgr1 = false

# No file outside the directory.
mon_data = ${directory}/monitor
osd_data = ${directory}/osd
rgw_data = ${directory}/gateway
run_dir = ${directory}
crash_dir = ${directory}
keyring = ${directory}/keyring
admin_socket =
log_file =
mon_cluster_log_file =
log_to_stderr = true
# Otherwise each start writes thousands of lines.
debug_rocksdb = 1

# One copy of each object, on this one store.
osd_pool_default_size = 1
osd_pool_default_min_size = 1
mon_allow_pool_size_one = true
osd_crush_chooseleaf_type = 0
bluestore_block_size = ${CAPACITY}
# Share of the disk, in percent, that is always free on a machine that can run the tests.
mon_data_avail_crit = 1

# The first start makes seven pools; each waits for the monitor's next proposal, by default for 1 s.
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
osd_pool_default_pg_num = 1
osd_pool_default_pgp_num = 1
osd_pool_default_pg_autoscale_mode = off
rgw_rados_pool_pg_num_min = 1

# How soon the gateway asks for the new address of a killed object store, in s: by default after 10.
objecter_timeout = 1
objecter_tick_interval = 0.5

rgw_frontends = beast endpoint=127.0.0.1:${port}
rgw_dynamic_resharding = false

[osd]
# A monitor with this setting would listen at its default port.
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
`;
}
