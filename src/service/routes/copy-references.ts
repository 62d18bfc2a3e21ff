import { pathFromRoot } from '../accounts/accounts.ts';
import { failure, nested, refused } from '../api/failures.ts';
import { metadata, wireTime } from '../api/metadata.ts';
import { absolutePath, destination, readPath } from '../api/paths.ts';
import { CREATE, LOOKUP, type RefusalTable } from '../api/refusals.ts';
import { type Route, rpc } from '../api/route.ts';
import { required, string } from '../api/schema.ts';
import { itemAt, itemOf, ownerOf } from '../links/sharing.ts';

const get = rpc({
  name: 'files/copy_reference/get',
  scope: 'files.content.write',
  argument: { path: required(readPath) },
  refusals: LOOKUP,
  handle: async (call) => {
    const { argument, caller, copyReferences, clock } = call;
    const item = await itemAt(call, caller, argument.path);
    const { reference, expiresMs } = await copyReferences.ofItem(clock.now(), caller.account.id, item.id);
    return { metadata: metadata(item), copy_reference: reference, expires: wireTime(expiresMs) };
  },
});

/** SaveCopyReferenceError. It reports only that the source is missing or too large. */
const SAVE: RefusalTable = {
  ...CREATE,
  lookup: (_refusal, side) =>
    side === 'from' ? failure('not_found') : nested('path', failure('malformed_path')),
  relocation: ({ tag }) =>
    tag === 'too_many_files'
      ? failure('too_many_files')
      : tag === 'insufficient_quota'
        ? nested('path', failure('insufficient_space'))
        : failure('other'),
};

/**
 * Copies the current item to `path`. Where the caller's paths reach the item, this is a single change. Any other file, of
 * another account or outside of the caller's home, is read and written; a folder is refused, because the copy would not be
 * a single change.
 */
const save = rpc({
  name: 'files/copy_reference/save',
  scope: 'files.content.write',
  argument: { copy_reference: required(string()), path: required(absolutePath) },
  refusals: SAVE,
  handle: async (call) => {
    const { argument, caller, copyReferences, storage, clock } = call;
    const { namespace } = caller.account;
    const found = await copyReferences.find(clock.now(), argument.copy_reference);
    if (!found) throw refused(failure('invalid_copy_reference'));
    const account = await ownerOf(call, found);
    const source = account && (await itemOf(call, account, found.itemId));
    if (!source) throw refused(failure('not_found'));
    const path = destination(argument.path, namespace);
    const isOwn = found.accountId === caller.account.id;
    if (isOwn && pathFromRoot(caller.account, source.pathLower) !== undefined) {
      const options = { copy: true, autorename: false };
      return { metadata: metadata(await storage.relocate(namespace, source.id, path, options)) };
    }
    if (source.kind === 'folder') throw refused(failure('no_permission'));
    const { clientModifiedMs, sizeBytes, contentHash } = source;
    const commit = {
      path,
      mode: { tag: 'add' },
      autorename: false,
      strictConflict: true,
      clientModifiedMs,
    } as const;
    const body = {
      bytes: storage.read(account.namespace, source, undefined),
      bytesMax: sizeBytes,
      contentHash,
    };
    return { metadata: metadata(await storage.upload(namespace, commit, body, { refusedBytes: 'dropped' })) };
  },
});

export const COPY_REFERENCE_ROUTES: readonly Route[] = [get, save];
