import type { Client } from '../context.ts';
import type { Remote } from '../remote.ts';
import { CommitLane } from './commit-lane.ts';
import { uploadCallsOf } from './upload-routes.ts';
import { Uploader } from './uploader.ts';

/**
 * The write pipeline of one account: the uploader reads a body into an `upload` call or the parts of a session, the
 * commit lane decides when and with which others it is committed, and the upload calls find out what became of a
 * commit whose answer was lost.
 */
export function writingOf(client: Client): Pick<Remote, 'write'> {
  const calls = uploadCallsOf(client);
  const lane = new CommitLane(calls, client.clock);
  const uploader = new Uploader(calls, lane, client.log);
  return { write: (...write) => uploader.write(...write) };
}
