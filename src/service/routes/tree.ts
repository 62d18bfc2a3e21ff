import { BadCall, failure, refused } from '../api/failures.ts';
import { fileMetadata, folderMetadata, metadata, wireTime } from '../api/metadata.ts';
import { destination, itemAddress, pathOrId, rev, writePath, writePathOrId } from '../api/paths.ts';
import { CREATE, DELETE, RELOCATE, RESTORE, REVISIONS } from '../api/refusals.ts';
import { type Route, rpc } from '../api/route.ts';
import { boolean, integer, optional, required, union, withDefault } from '../api/schema.ts';

/** The form of a function's result: metadata in a struct, or bare metadata in the first versions. */
type Form = (metadata: object) => object;

const inStruct: Form = (metadata) => ({ metadata });
const bare: Form = (metadata) => metadata;

/** Creates a folder, and missing folders above it. */
function createFolder(name: string, form: Form): Route {
  return rpc({
    name,
    scope: 'files.content.write',
    argument: { path: required(writePath), autorename: withDefault(boolean, false) },
    refusals: CREATE,
    handle: async ({ argument, caller, storage }) => {
      const { namespace } = caller.account;
      const path = destination(argument.path, namespace);
      return form(folderMetadata(await storage.createFolder(namespace, path, argument.autorename)));
    },
  });
}

/** `parent_rev`: delete only if the file still has this revision. */
const deleteArgument = { path: required(writePathOrId), parent_rev: optional(rev) };

/** Deletes an entry; `restore` brings files back. */
function remove(name: string, form: Form): Route {
  return rpc({
    name,
    scope: 'files.content.write',
    argument: deleteArgument,
    refusals: DELETE,
    handle: async ({ argument, caller, storage }) => {
      const { namespace } = caller.account;
      const address = itemAddress(argument.path, namespace);
      return form(metadata(await storage.remove(namespace, address, argument.parent_rev)));
    },
  });
}

/** Deletes an entry with all revisions, also one that was deleted before. */
const permanentlyDelete = rpc({
  name: 'files/permanently_delete',
  scope: 'files.permanent_delete',
  argument: deleteArgument,
  refusals: DELETE,
  handle: async ({ argument, caller, storage }) => {
    const { namespace, mayDeletePermanently } = caller.account;
    if (!mayDeletePermanently) throw new BadCall('Your API app is not allowed to call this function.');
    await storage.removeForever(namespace, itemAddress(argument.path, namespace), argument.parent_rev);
    return null;
  },
});

/** The two flags concern shared folders and owners, which do not exist here; they have no effect. */
const relocationFields = {
  from_path: required(writePathOrId),
  to_path: required(writePathOrId),
  autorename: withDefault(boolean, false),
  allow_shared_folder: withDefault(boolean, false),
  allow_ownership_transfer: withDefault(boolean, false),
};

function relocation(name: string, copy: boolean, form: Form): Route {
  return rpc({
    name,
    scope: 'files.content.write',
    argument: relocationFields,
    refusals: RELOCATE,
    handle: async ({ argument, caller, storage }) => {
      const { namespace } = caller.account;
      const from = itemAddress(argument.from_path, namespace, 'from');
      const to = destination(argument.to_path, namespace);
      const { autorename } = argument;
      return form(metadata(await storage.relocate(namespace, from, to, { copy, autorename })));
    },
  });
}

const REVISIONS_MAX = 100;
const REVISIONS_DEFAULT = 10;

/** Lists revisions, newest first, also of a deleted file. */
const listRevisions = rpc({
  name: 'files/list_revisions',
  scope: 'files.metadata.read',
  argument: {
    path: required(pathOrId),
    mode: withDefault(union({ path: null, id: null }), { tag: 'path' } as const),
    limit: withDefault(integer({ min: 1, max: REVISIONS_MAX }), REVISIONS_DEFAULT),
    before_rev: optional(rev),
    include_restorable_info: withDefault(boolean, false),
  },
  refusals: REVISIONS,
  handle: async ({ argument, caller, storage }) => {
    const { namespace } = caller.account;
    const { mode, limit, before_rev: beforeRev } = argument;
    if (mode.tag === 'id' && beforeRev !== undefined) throw refused(failure('before_rev_not_supported'));
    const page = await storage.revisions(namespace, itemAddress(argument.path, namespace), {
      by: mode.tag,
      limit,
      ...(beforeRev !== undefined && { beforeRev }),
    });
    return {
      is_deleted: page.deleted,
      server_deleted: page.deletedMs === undefined ? undefined : wireTime(page.deletedMs),
      entries: page.entries.map((file) => ({
        ...fileMetadata(file),
        // Everything listed can be restored; other revisions are no longer listed.
        ...(argument.include_restorable_info && { is_restorable: true }),
      })),
      has_more: page.hasMore,
    };
  },
});

/** Stores an old revision's content as a new revision. */
const restore = rpc({
  name: 'files/restore',
  scope: 'files.content.write',
  argument: { path: required(writePath), rev: required(rev) },
  refusals: RESTORE,
  handle: async ({ argument, caller, storage }) => {
    const { namespace } = caller.account;
    const path = itemAddress(argument.path, namespace);
    return fileMetadata(await storage.restore(namespace, path, argument.rev));
  },
});

export const TREE_ROUTES: readonly Route[] = [
  createFolder('files/create_folder_v2', inStruct),
  createFolder('files/create_folder', bare),
  remove('files/delete_v2', inStruct),
  remove('files/delete', bare),
  permanentlyDelete,
  relocation('files/move_v2', false, inStruct),
  relocation('files/move', false, bare),
  relocation('files/copy_v2', true, inStruct),
  relocation('files/copy', true, bare),
  listRevisions,
  restore,
];
