import { failure, refused } from '../api/failures.ts';
import { NO_REFUSALS } from '../api/refusals.ts';
import { type ApiCall, type ApiCaller, type Route, rpc } from '../api/route.ts';
import { required, string } from '../api/schema.ts';
import type { JobLine, JobResult } from '../jobs/jobs.ts';

/** Returns the LaunchResultBase of a new job. Only the function with the same `kind` can check it. */
export function launch(
  { jobs, caller }: ApiCall<ApiCaller>,
  kind: string,
  work: (closing: AbortSignal) => Promise<JobResult>,
  line?: JobLine,
): object {
  return { '.tag': 'async_job_id', async_job_id: jobs.start(caller.owner, kind, work, line) };
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
    handle: ({ argument, caller, jobs }) => {
      const state = jobs.state(caller.owner, kind, argument.async_job_id);
      if (state === undefined) throw refused(failure('invalid_async_job_id'));
      if (state === 'failed') throw refused(failure('internal_error'));
      return state === 'in-progress' ? { '.tag': 'in_progress' } : state;
    },
  });
}
