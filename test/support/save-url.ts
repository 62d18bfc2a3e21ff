import { expect } from 'vitest';
import { eventually } from './eventually.ts';
import type { TestService } from './service.ts';
import { type Answered, rpc } from './service-client.ts';

/** The result of a job whose download failed. */
export const DOWNLOAD_FAILED = { '.tag': 'failed', failed: { '.tag': 'download_failed' } };

/** Calls `files/save_url`. */
export function launchSave(
  service: TestService,
  url: string,
  path: string,
  token = service.token,
): Promise<Answered> {
  return rpc(service, 'files/save_url', { url, path }, { token });
}

/** Returns the result of a job. */
export async function endOfSave(
  service: TestService,
  { json, text }: Answered,
  token = service.token,
): Promise<object> {
  const { async_job_id } = json as { async_job_id?: string };
  if (async_job_id === undefined) throw new Error(`no job: ${text}`);
  return await eventually(async () => {
    const checked = await rpc(service, 'files/save_url/check_job_status', { async_job_id }, { token });
    expect(checked.json).not.toEqual({ '.tag': 'in_progress' });
    return checked.json as object;
  });
}
