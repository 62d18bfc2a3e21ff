import { foldName } from '../../util/path.ts';
import { failure, nested, type WireFailure } from '../api/failures.ts';
import { folderMetadata, metadata } from '../api/metadata.ts';
import { destination, itemAddress, rev, writePath, writePathOrId } from '../api/paths.ts';
import { CREATE, DELETE, failureOf, NO_REFUSALS, RELOCATE, type RefusalTable } from '../api/refusals.ts';
import { type Route, rpc } from '../api/route.ts';
import { boolean, list, optional, required, struct, withDefault } from '../api/schema.ts';
import { inChunks } from '../jobs/batch.ts';
import { type Outcome, StorageError, type StoredFolder } from '../storage/storage.ts';
import { checkRoute, complete, launch } from './jobs.ts';

/** Maximum number of entries, as at the real service. */
const BATCH_ENTRIES_MAX = 1000;
const BATCH_FOLDERS_MAX = 10_000;

/** Maximum number of folders that are created without a job. */
const FOLDERS_AT_ONCE = 20;

/** A call without a job continues while the service closes. */
const NEVER = new AbortController().signal;

const CREATE_FOLDERS = 'files/create_folder_batch';

/** Creates a few folders at once, many by a job. A path that is named twice is created once. */
const createFolders = rpc({
  name: CREATE_FOLDERS,
  scope: 'files.content.write',
  argument: {
    paths: required(list(writePath, { max: BATCH_FOLDERS_MAX })),
    autorename: withDefault(boolean, false),
    force_async: withDefault(boolean, false),
  },
  refusals: NO_REFUSALS,
  handle: async (call) => {
    const { argument, caller, storage } = call;
    const { namespace } = caller.account;
    const work = async (stop: AbortSignal) => {
      const keys = argument.paths.map(foldName);
      const paths = new Map<string, string>();
      for (const path of argument.paths) {
        const key = foldName(path);
        if (!paths.has(key)) paths.set(key, path);
      }
      const outcomes = await inChunks([...paths.values()], stop, {
        prepare: (path) => destination(path, namespace),
        run: (ready) => storage.createFolders(namespace, ready, argument.autorename),
      });
      const byKey = new Map([...paths.keys()].map((key, index) => [key, outcomes[index]]));
      return complete(keys.map((key) => folderResult(byKey.get(key))));
    };
    const isLong = argument.force_async || argument.paths.length > FOLDERS_AT_ONCE;
    return isLong ? launch(call, CREATE_FOLDERS, work) : await work(NEVER);
  },
});

const DELETE_ALL = 'files/delete_batch';

const deleteEntry = struct({ path: required(writePathOrId), parent_rev: optional(rev) });

/** Always by a job, like the real service. */
const deleteBatch = rpc({
  name: DELETE_ALL,
  scope: 'files.content.write',
  argument: { entries: required(list(deleteEntry, { max: BATCH_ENTRIES_MAX })) },
  refusals: NO_REFUSALS,
  handle: (call) => {
    const { argument, caller, storage } = call;
    const { namespace } = caller.account;
    return launch(call, DELETE_ALL, async (closing) => {
      const outcomes = await inChunks(argument.entries, closing, {
        prepare: ({ path, parent_rev: parentRev }) => ({ address: itemAddress(path, namespace), parentRev }),
        run: (ready) => storage.removeAll(namespace, ready),
      });
      return complete(
        outcomes.map((outcome) =>
          outcome instanceof StorageError
            ? failed(entryFailure(outcome, DELETE))
            : { '.tag': 'success', metadata: metadata(outcome) },
        ),
      );
    });
  },
});

const relocationEntry = struct({ from_path: required(writePathOrId), to_path: required(writePathOrId) });

const relocationFields = {
  entries: required(list(relocationEntry, { min: 1, max: BATCH_ENTRIES_MAX })),
  autorename: withDefault(boolean, false),
};

/** Returns the two addresses of an entry. Throws for an invalid path. */
function relocationOf(
  entry: ReturnType<typeof relocationEntry>,
  namespace: string,
): { readonly from: string; readonly to: string } {
  return {
    from: itemAddress(entry.from_path, namespace, 'from'),
    to: destination(entry.to_path, namespace),
  };
}

/** Always a job. Entries are carried out in order, so that one may depend on those before it. */
function relocationBatch(name: string, copy: boolean): Route {
  return rpc({
    name,
    scope: 'files.content.write',
    // There are no owners here, so the flag, which only moves have, has no effect.
    argument: copy
      ? relocationFields
      : { ...relocationFields, allow_ownership_transfer: withDefault(boolean, false) },
    refusals: NO_REFUSALS,
    handle: (call) => {
      const { argument, caller, storage } = call;
      const { namespace } = caller.account;
      return launch(call, name, async (closing) => {
        const outcomes = await inChunks(argument.entries, closing, {
          prepare: (entry) => relocationOf(entry, namespace),
          run: (ready) => storage.relocateAll(namespace, ready, { copy, autorename: argument.autorename }),
        });
        return complete(
          outcomes.map((outcome) =>
            outcome instanceof StorageError
              ? failed(relocationFailure(outcome))
              : { '.tag': 'success', success: metadata(outcome) },
          ),
        );
      });
    },
  });
}

/** The first version: all entries in one change, or none; the job fails with the first refusal. */
function relocationBatchV1(name: string, copy: boolean): Route {
  return rpc({
    name,
    scope: 'files.content.write',
    argument: {
      ...relocationFields,
      allow_shared_folder: withDefault(boolean, false),
      allow_ownership_transfer: withDefault(boolean, false),
    },
    refusals: NO_REFUSALS,
    handle: (call) => {
      const { argument, caller, storage } = call;
      const { namespace } = caller.account;
      const options = { copy, autorename: argument.autorename };
      return launch(call, name, async () => {
        try {
          const entries = argument.entries.map((entry) => relocationOf(entry, namespace));
          const moved = await storage.relocateTogether(namespace, entries, options);
          return complete(moved.map((item) => ({ metadata: metadata(item) })));
        } catch (error) {
          if (!(error instanceof StorageError)) throw error;
          return { '.tag': 'failed', failed: entryFailure(error, RELOCATE).value };
        }
      });
    },
  });
}

export const TREE_BATCH_ROUTES: readonly Route[] = [
  createFolders,
  checkRoute('files/create_folder_batch/check', CREATE_FOLDERS),
  deleteBatch,
  checkRoute('files/delete_batch/check', DELETE_ALL),
  relocationBatch('files/move_batch_v2', false),
  checkRoute('files/move_batch/check_v2', 'files/move_batch_v2'),
  relocationBatch('files/copy_batch_v2', true),
  checkRoute('files/copy_batch/check_v2', 'files/copy_batch_v2'),
  relocationBatchV1('files/move_batch', false),
  checkRoute('files/move_batch/check', 'files/move_batch'),
  relocationBatchV1('files/copy_batch', true),
  checkRoute('files/copy_batch/check', 'files/copy_batch'),
];

function folderResult(outcome: Outcome<StoredFolder> | undefined): object {
  if (outcome === undefined) throw new Error('there are fewer outcomes than folders');
  if (!(outcome instanceof StorageError)) return { '.tag': 'success', metadata: folderMetadata(outcome) };
  const refusal = failureOf(outcome, CREATE);
  if (!refusal) throw outcome;
  return failed(refusal);
}

function failed(refusal: WireFailure): object {
  return { '.tag': 'failure', failure: refusal.value };
}

/** RelocationBatchErrorEntry. */
function relocationFailure(error: StorageError): WireFailure {
  const refusal = entryFailure(error, RELOCATE);
  return isContention(error) ? refusal : nested('relocation_error', refusal);
}

/** Returns an entry's failure. These unions have a member for contention. */
function entryFailure(error: StorageError, table: RefusalTable): WireFailure {
  if (isContention(error)) return failure(error.refusal.tag);
  const refusal = failureOf(error, table);
  if (!refusal) throw error;
  return refusal;
}

function isContention({ refusal }: StorageError): boolean {
  return refusal.tag === 'too_many_write_operations';
}
