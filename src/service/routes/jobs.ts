import { failure, refused } from '../api/failures.ts';
import { NO_REFUSALS } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, type Route, rpc } from '../api/route.ts';
import { required, string } from '../api/schema.ts';
import type { JobResult } from '../jobs/job-rows.ts';
import type { JobLine, Work } from '../jobs/jobs.ts';

/** Returns the LaunchResultBase of a new job. Only the function with the same `kind` can check it. */
export async function launch(
  { jobs, caller }: ApiCall<ApiCaller>,
  kind: string,
  work: Work,
  line?: JobLine,
): Promise<object> {
  return { '.tag': 'async_job_id', async_job_id: await jobs.start(caller.owner, kind, work, line) };
}

/** Returns the result of a finished batch: the outcomes of its entries. */
export function complete(entries: readonly object[]): JobResult {
  return { '.tag': 'complete', entries };
}

/** Returns the route that checks a job: PollResultBase, PollError. */
export function checkRoute(name: string, kind: string): Route {
  return rpc({
    name,
    scope: 'files.content.write',
    argument: { async_job_id: required(string({ minLength: 1 })) },
    refusals: NO_REFUSALS,
    handle: async ({ argument, caller, jobs }) => {
      const state = await jobs.state(caller.owner, kind, argument.async_job_id);
      if (state === undefined) throw refused(failure('invalid_async_job_id'));
      if (state === 'failed') throw refused(failure('internal_error'));
      return state === 'in-progress' ? { '.tag': 'in_progress' } : state;
    },
  });
}
