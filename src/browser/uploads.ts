import { DavError } from '../dav/errors.ts';
import { isTransient } from '../dav/failures.ts';
import { untilUnbroken, withRequestLock } from '../dav/locks/request-lock.ts';
import { FileError } from '../drive/errors.ts';
import type { WriteMode, WriteOptions } from '../drive/files.ts';
import type { Path } from '../util/path.ts';
import { answerJson, type Context, type Input, type Route } from './route.ts';
import type { Upload, UploadOptions } from './upload.ts';

/**
 * `upload`: begins to store a file of `size` bytes at `path`, so that a lost connection costs no byte that has arrived. The
 * bytes follow by `upload-part`. The file is not visible before the last one, and is stored like that of a PUT, whose
 * refusals are answered too. `replace` is `yes` when a file at `path` may be replaced; otherwise that is answered 412.
 * `modified`: the file's time, in ms since 1970.
 */
export const upload: Route = {
  method: 'POST',
  changesDrive: true,
  async run(context) {
    const { input } = context;
    const mode: WriteMode = { if: input.optional('replace') === 'yes' ? 'any' : 'absent' };
    await beginUpload(context, input.path('path'), mode);
  },
};

/** The parts of a request that an upload needs. */
export type UploadContext = Pick<
  Context,
  'exchange' | 'signal' | 'closing' | 'user' | 'drive' | 'input' | 'uploads' | 'clock'
>;

/** Begins an upload of `size` bytes to `path`, and answers with its id. `ended` is called when it is stored or refused. */
export async function beginUpload(
  context: UploadContext,
  path: Path,
  mode: WriteMode,
  ended: (isStored: boolean) => void = () => undefined,
): Promise<void> {
  const { exchange, input, uploads, user = '', drive, clock, closing } = context;
  const sizeBytes = wholeNumberIn(input, 'size');
  const options: WriteOptions = {
    mode,
    sizeBytes,
    ...(input.optional('modified') !== undefined && { modifiedMs: wholeNumberIn(input, 'modified') }),
  };
  const write = storing(context, path, options);
  const store: typeof write = async (body, signal) => {
    try {
      await write(body, signal);
      ended(true);
    } catch (error) {
      ended(false);
      throw error;
    }
  };
  const made = uploads.begin({ user, rights: drive.rights, sizeBytes, clock, store }, closing);
  try {
    await made.started();
  } catch (refusal) {
    // Nobody knows its id.
    made.forget();
    throw refusal;
  }
  await answerJson(exchange, { id: made.id });
}

/**
 * `upload-state`: how much of the upload `id` has arrived. Answers with the drive's refusal if it has refused the file, and
 * 404 if it was only busy: that upload is over, but another one may succeed.
 */
export const uploadState: Route = {
  method: 'GET',
  run: answerState,
};

export async function answerState(context: UploadContext): Promise<void> {
  const upload = found(context);
  try {
    await answerJson(context.exchange, await upload.progress());
  } catch (refusal) {
    throw isTransient(refusal) ? gone() : refusal;
  }
}

/** `upload-part`: the bytes of the upload `id` from `offset` on, as many as the request has. Answers 416 if others are next. */
export const uploadPart: Route = {
  method: 'POST',
  takesBytes: true,
  run: receivePart,
};

export async function receivePart(context: UploadContext): Promise<void> {
  const { exchange, input, signal } = context;
  const offset = wholeNumberIn(input, 'offset');
  await answerJson(exchange, await found(context).receive(exchange.body(), offset, signal));
}

/** `end-upload`: gives up the upload `id`, unless all its bytes have arrived. */
export const endUpload: Route = {
  method: 'POST',
  run: giveUp,
};

export async function giveUp(context: UploadContext): Promise<void> {
  found(context).fail(new FileError('incomplete', 'the upload was cancelled'));
  await answerJson(context.exchange, {});
}

/** Returns a function that stores the body at `path`, under a request lock. */
function storing(
  { exchange, drive, user, clock }: UploadContext,
  path: Path,
  options: WriteOptions,
): UploadOptions['store'] {
  return async (body, signal) => {
    const entry = await drive.files.statForWrite(path, { isPinned: false }, signal);
    if (entry?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    if (entry && options.mode.if === 'absent') throw new FileError('changed', `${path} exists already`);
    const request = { exchange, principal: user ?? '', drive, clock };
    const changes = [{ path, membership: !entry }];
    await withRequestLock(request, { tokens: new Set() }, changes, (lock) =>
      drive.files.write(path, untilUnbroken(body, lock), options, signal),
    );
  };
}

/** Returns the upload that the request names. Throws `DavError` 404, also when the user's rights are others than then. */
function found({ input, uploads, user = '', drive }: UploadContext): Upload {
  const upload = uploads.get(input.text('id'));
  if (upload?.user === user && upload.rights === drive.rights) return upload;
  throw gone();
}

function gone(): DavError {
  return new DavError(404, 'there is no such upload any more; begin it again');
}

/** Throws `DavError` 400. */
export function wholeNumberIn(input: Input, name: string): number {
  const text = input.text(name);
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new DavError(400, `"${name}" must be a whole number`);
}
