import { expect, test } from 'vitest';
import { serviceManager } from '../../../src/cli/service-manager.ts';
import { silentLog } from '../../../src/util/log.ts';

test('a systemd that cannot be notified, because no process can be started, is logged once and does not end davgate', async () => {
  const logged: string[] = [];
  const log = { ...silentLog, warn: (event: string) => void logged.push(event) };
  // Node throws at once for such a variable, as it does without memory for a process.
  const environment = { NOTIFY_SOCKET: '/run/systemd/notify', ODD: 'a\0b' };
  const manager = serviceManager(environment, log);
  await manager.ready();
  await manager.reloading();
  await manager.stopping();
  expect(logged).toEqual([expect.stringContaining('cannot notify systemd')]);
});
