import { type Answered, type Callable, rpc } from './service-client.ts';

/**
 * Launches a batch, or takes the answer of its launch, and polls it like the official clients. Returns its
 * entries, or one failure for a job that failed as a whole.
 */
export async function finished(
  service: Callable,
  batch: string,
  given: object | Answered,
): Promise<unknown[]> {
  const launched = 'status' in given ? (given as Answered) : await rpc(service, `files/${batch}`, given);
  const { async_job_id } = launched.json as { async_job_id: string };
  const check = batch.endsWith('_v2') ? `${batch.slice(0, -'_v2'.length)}/check_v2` : `${batch}/check`;
  for (;;) {
    const { status, text, json } = await rpc(service, `files/${check}`, { async_job_id });
    if (status !== 200) throw new Error(`${check}: ${status} ${text}`);
    const state = json as { '.tag': string; entries: unknown[]; failed: object };
    if (state['.tag'] === 'complete') return state.entries;
    if (state['.tag'] === 'failed') return [{ '.tag': 'failure', failure: state.failed }];
  }
}
