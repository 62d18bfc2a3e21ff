import { randomBytes } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';
import type { FileEntry, Remote } from '../../api/remote.ts';
import type { DeletePolicy } from '../../config/drive-config.ts';
import { linkedSignal } from '../../util/abort.ts';
import { readAll } from '../../util/byte-source.ts';
import { type Clock, elapsedMs } from '../../util/clock.ts';
import { join, type Path, pathOf } from '../../util/path.ts';
import { attempt, type Report } from './report.ts';

/** Random bytes in the folder's name, which make it unique. */
const NAME_BYTES = 12;

const SMALL_BYTES = 64 * 1024;

/** Size of the large file, in bytes: more than one `upload` carries, so that an upload session is used. */
const LARGE_BYTES = 4 * 1024 * 1024 + 1;

/** How long a change may take to be reported, in ms. */
const FEED_WAIT_MS = 30_000;

/** Time limit for removing the folder, in ms: a person waits. */
const CLEANUP_MS = 20_000;

export interface ScratchDeps {
  readonly remote: Remote;
  readonly report: Report;
  readonly deletePolicy: DeletePolicy;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

const WRITING = { scope: 'files.content.write' };
const READING = { scope: 'files.content.read' };

/**
 * Tries writing, reading, sharing, deleting and the change feed in a folder of its own. Removes it in any case, except
 * after a hard kill. Touches nothing else.
 */
export async function checkInScratch(deps: ScratchDeps): Promise<void> {
  const { remote, report, signal } = deps;
  const folder = pathOf([`.davgate-doctor-${randomBytes(NAME_BYTES).toString('hex')}`]);
  let isMade = true;
  try {
    const made = await attempt(report, 'folder', WRITING, () => remote.createFolder(folder, signal));
    // This failure is certain; after any other one the folder may exist.
    isMade = made !== undefined;
    if (!made) return;
    report.ok('folder', `made ${folder}`);
    await checkFeed(deps, folder);
    const file = await checkRoundTrips(deps, folder);
    if (!file) return;
    await checkSharing(deps, file.path);
    await checkPermanentDelete(deps, file.path);
  } finally {
    await remove(deps, folder, isMade);
  }
}

/** Makes a change during a long poll, which has to report it. */
async function checkFeed({ remote, report, clock, signal }: ScratchDeps, folder: Path): Promise<void> {
  const about = 'change feed';
  const reported = await attempt(report, about, { scope: 'files.metadata.read' }, async () => {
    const cursor = await remote.latestCursor(signal);
    const over = new AbortController();
    const listening = linkedSignal(signal, over.signal);
    try {
      const change = remote.awaitChange(cursor, FEED_WAIT_MS, listening.signal);
      change.catch(() => undefined);
      await remote.createFolder(join(folder, 'change'), signal);
      const made = clock.instant();
      return (await change) ? Math.round(elapsedMs(clock, made)) : undefined;
    } finally {
      over.abort(new Error('the check is over'));
    }
  });
  if (!reported) return;
  const ms = reported.result;
  if (ms === undefined)
    report.fail(
      about,
      `no change was reported within ${FEED_WAIT_MS / 1000} s; check the notify-url and proxies`,
    );
  else report.ok(about, `a change was reported after ${ms} ms`);
}

/** Uploads and downloads bytes, by one call and by an upload session. */
async function checkRoundTrips(deps: ScratchDeps, folder: Path): Promise<FileEntry | undefined> {
  const { remote, report, signal } = deps;
  const options = { mode: { if: 'absent' } } as const;
  const small = randomBytes(SMALL_BYTES);
  const path = join(folder, 'small');
  const file = await attempt(report, 'upload', WRITING, () =>
    remote.write(path, once(small), options, signal),
  );
  if (!file) return undefined;
  report.ok('upload', 'a file was written');
  await checkBytes(deps, 'download', file.result, small);
  const large = randomBytes(LARGE_BYTES);
  const about = 'upload session';
  const sent = await attempt(report, about, WRITING, () =>
    remote.write(join(folder, 'large'), once(large), options, signal),
  );
  if (sent) await checkBytes(deps, about, sent.result, large);
  return file.result;
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

async function checkBytes(
  { remote, report, signal }: ScratchDeps,
  about: string,
  file: FileEntry,
  expected: Uint8Array,
): Promise<void> {
  const got = await attempt(report, about, READING, async () =>
    readAll(await remote.download(file, undefined, signal), file.sizeBytes),
  );
  if (!got) return;
  const size = `${expected.length} bytes`;
  if (got.result.equals(expected)) report.ok(about, `${size} came back as they were sent`);
  else
    report.fail(
      about,
      `${size} came back changed (${got.result.length} bytes): the network or a proxy damages them`,
    );
}

async function checkSharing({ remote, report, signal }: ScratchDeps, path: Path): Promise<void> {
  const without = 'no shared links';
  const about = 'shared links';
  const seen = await attempt(report, about, { scope: 'sharing.read', without }, () =>
    remote.sharedLink(path, signal),
  );
  if (!seen) return;
  const made = await attempt(report, about, { scope: 'sharing.write', without }, async () => {
    const { url } = await remote.createSharedLink(path, {}, signal);
    await remote.revokeSharedLink(url, signal);
  });
  if (made) report.ok(about, 'a link was made and revoked');
}

async function checkPermanentDelete(
  { remote, report, deletePolicy, signal }: ScratchDeps,
  path: Path,
): Promise<void> {
  const about = 'permanent delete';
  if (deletePolicy === 'trash') {
    report.ok(about, 'not used: DELETE moves to the trash (--delete trash)');
    return;
  }
  try {
    await remote.remove(path, { permanent: true }, signal);
    report.ok(about, 'is allowed: DELETE cannot be undone (--delete trash keeps deleted files)');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.failure !== 'not-allowed') report.fail(about, error.message);
    else if (deletePolicy === 'auto')
      report.warn(about, 'is not allowed by account and app: DELETE moves to the trash of the service');
    else
      report.fail(
        about,
        'is not allowed by account and app, and --delete permanent refuses anything else: every DELETE will fail; use --delete auto',
      );
  }
}

/** Removes the folder. Uses a signal of its own, because the checks' signal may be aborted. */
async function remove({ remote, report, clock }: ScratchDeps, folder: Path, isMade: boolean): Promise<void> {
  const late = new AbortController();
  const done = new AbortController();
  clock.sleep(CLEANUP_MS, done.signal).then(
    () => late.abort(new ApiError('offline', `not done within ${CLEANUP_MS / 1000} s`)),
    () => undefined,
  );
  try {
    await removeFor(remote, folder, late.signal);
    if (isMade) report.ok('cleanup', `removed ${folder}`);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.failure === 'not-found' || !isMade) return;
    report.fail('cleanup', `cannot remove ${folder}: ${error.message}; delete it yourself`);
  } finally {
    done.abort();
  }
}

/** Deletes permanently if that is allowed, to keep random bytes out of the trash. */
async function removeFor(remote: Remote, folder: Path, signal: AbortSignal): Promise<void> {
  try {
    await remote.remove(folder, { permanent: true }, signal);
  } catch (error) {
    if (!(error instanceof ApiError) || error.failure !== 'not-allowed') throw error;
    await remote.remove(folder, { permanent: false }, signal);
  }
}
