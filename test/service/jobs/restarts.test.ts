import { afterEach, beforeEach, expect, test } from 'vitest';
import { builtUrl } from '../../support/build.ts';
import { finished } from '../../support/jobs.ts';
import { temporaryDirectory } from '../../support/program.ts';
import { refusal, refusalIn, rpc } from '../../support/service-client.ts';
import { ServiceProcess } from '../../support/service-process.ts';

const SIGNALS = ['SIGTERM', 'SIGKILL'] as const;

/** Longer than any test, so that a job does not get further than its first commit. */
const HELD = { faults: { 'contention-hold-ms': 3_600_000 } };

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let running: ServiceProcess | undefined;

beforeEach(async () => {
  folder = await temporaryDirectory();
});
afterEach(async () => {
  await running?.end('SIGKILL');
  await folder.remove();
});

/** Starts a process on the folder; the one before must have ended. */
async function start(options?: ConstructorParameters<typeof ServiceProcess>[2]): Promise<ServiceProcess> {
  running = new ServiceProcess(builtUrl('service/server.ts'), folder.path, options);
  await running.start();
  return running;
}

const DELETE = { entries: [{ path: '/a' }, { path: '/missing' }] };

async function launch(service: ServiceProcess): Promise<string> {
  const { json } = await rpc(service, 'files/delete_batch', DELETE);
  return (json as { async_job_id: string }).async_job_id;
}

const check = (service: ServiceProcess, id: string) =>
  rpc(service, 'files/delete_batch/check', { async_job_id: id });

test.each(SIGNALS)('the result of a batch is the same after %s and a restart', async (signal) => {
  const service = await start();
  await rpc(service, 'files/create_folder_v2', { path: '/a' });
  const launched = await rpc(service, 'files/delete_batch', DELETE);
  const entries = await finished(service, 'delete_batch', launched);
  expect(entries).toMatchObject([{ '.tag': 'success' }, { '.tag': 'failure' }]);
  await service.restart(signal);
  expect(await finished(service, 'delete_batch', launched)).toEqual(entries);
});

test.each(SIGNALS)(
  'a running and a waiting job that %s cuts off answer internal_error after a restart',
  async (signal) => {
    const service = await start(HELD);
    const ids = [await launch(service), await launch(service)];
    for (const id of ids) expect((await check(service, id)).json).toEqual({ '.tag': 'in_progress' });
    await service.end(signal);
    const again = await start();
    for (const id of ids)
      expect(refusalIn(await check(again, id))).toEqual(
        refusal(409, 'internal_error', { '.tag': 'internal_error' }),
      );
  },
);
