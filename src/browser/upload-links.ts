import { DavError } from '../dav/errors.ts';
import { FileError } from '../drive/errors.ts';
import { answerJson, type Context, type OwnUploadLinks, type Route } from './route.ts';
import { expiryIn } from './shared-links.ts';
import { wholeNumberIn } from './uploads.ts';

/** Maximum length of what senders read, in characters. */
const LABEL_MAX = 100;

/** `upload-links`: the user's links by which others send files, without their addresses, which davgate does not keep. */
export const uploadLinks: Route = {
  method: 'GET',
  async run(context) {
    await answerJson(context.exchange, { links: await ownOf(context).list() });
  },
};

/**
 * `make-upload-link`: makes one for the folder at `path`. Senders read its `label`. Optional: a `password`, a time at which
 * it `expires`, and the maximum `size` of all files together, in bytes. Its answer is the only one with the address.
 */
export const makeUploadLink: Route = {
  method: 'POST',
  changesDrive: true,
  async run(context) {
    const { exchange, drive, input, signal, log } = context;
    const own = ownOf(context);
    const [path, label, expiresMs] = [input.path('path'), input.text('label').trim(), expiryIn(input)];
    if (label === '' || label.length > LABEL_MAX || /\p{Cc}/u.test(label))
      throw new DavError(400, `"label" must be text of 1 to ${LABEL_MAX} characters in one line`);
    const folder = await drive.files.stat(path, signal);
    if (folder?.kind !== 'folder') throw new FileError('not-found', `there is no folder ${path}`);
    const sizeBytesMax = input.optional('size') === undefined ? undefined : wholeNumberIn(input, 'size');
    const password = input.optional('password');
    const url = await own.make({ path, label, password, expiresMs, sizeBytesMax });
    if (url === undefined)
      throw new DavError(409, 'you have as many upload links as davgate keeps for a user; end one first');
    log.info('upload link made', { user: context.user, path });
    await answerJson(exchange, { url });
  },
};

/** `end-upload-link`: ends the one with this `id`. It answers 404 if there is none. */
export const endUploadLink: Route = {
  method: 'POST',
  async run(context) {
    const isThere = await ownOf(context).end(context.input.text('id'));
    if (!isThere) throw new DavError(404, 'there is no such upload link any more');
    context.log.info('upload link ended', { user: context.user });
    await answerJson(context.exchange, {});
  },
};

/** Throws `DavError` 403. */
function ownOf({ user, drive, uploadLinksOf }: Context): OwnUploadLinks {
  const own = uploadLinksOf(user, drive);
  if (own) return own;
  throw new DavError(
    403,
    'only users of the configuration can have upload links, for the drives named there',
  );
}
