import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { rpc, upload } from '../../support/service-client.ts';
import { Nodes, newBlockFolder } from './nodes.ts';

let postgres: TestPostgres;

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.close());

/** Number of batches; each moves what the one before it has moved. */
const BATCHES = 12;

/** Entries that fail take as long as those that do not. */
const SLOW = Array.from({ length: 200 }, (_, index) => ({
  from_path: `/none-${index}`,
  to_path: `/new-${index}`,
}));

test('batches of an account that are requested at two nodes in turn run in the order of their calls', async () => {
  const nodes = await Nodes.started(2, {
    metadata: await postgres.newDatabase(),
    blocks: { folder: await newBlockFolder() },
  });
  const service = nodes.inTurn(0);
  const call = async <T>(name: string, argument: object) => (await rpc(service, name, argument)).json as T;
  await upload(service, 'files/upload', { path: '/0' }, { body: 'text' });
  const jobs: string[] = [];
  for (let count = 0; count < BATCHES; count++) {
    const entries = [...SLOW, { from_path: `/${count}`, to_path: `/${count + 1}` }];
    const launched = await call<{ async_job_id: string }>('files/move_batch_v2', { entries });
    jobs.push(launched.async_job_id);
  }
  for (const async_job_id of jobs) {
    type State = { '.tag': string; entries: { '.tag': string }[] };
    let state = await call<State>('files/move_batch/check_v2', { async_job_id });
    while (state['.tag'] === 'in_progress')
      state = await call<State>('files/move_batch/check_v2', { async_job_id });
    expect(state.entries.at(-1)).toMatchObject({ '.tag': 'success' });
  }
});
