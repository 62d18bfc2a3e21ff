import { type Commit, StorageError } from '../storage/storage.ts';
import { destination, isUploadPath, rev } from './paths.ts';
import { propertyGroups } from './property-groups.ts';
import { boolean, optional, required, string, struct, timestamp, union, withDefault } from './schema.ts';

/**
 * The fields of CommitInfo. `path` may be any string here, because a malformed one is the upload's own error
 * `malformed_path` and not a malformed call.
 */
export const commitFields = {
  path: required(string()),
  mode: withDefault(union({ add: null, overwrite: null, update: rev }), { tag: 'add' } as const),
  autorename: withDefault(boolean, false),
  client_modified: optional(timestamp),
  mute: withDefault(boolean, false),
  property_groups: optional(propertyGroups),
  strict_conflict: withDefault(boolean, false),
};

const commitInfo = struct(commitFields);

export type CommitInfo = ReturnType<typeof commitInfo>;

/** Returns the store's commit. Throws its `malformed_path` for a path that cannot be written to. */
export function commitOf(info: CommitInfo, namespace: string): Commit {
  if (!isUploadPath(info.path)) throw new StorageError({ kind: 'write', tag: 'malformed_path' });
  const { mode } = info;
  return {
    path: destination(info.path, namespace),
    mode: mode.tag === 'update' ? { tag: 'update', rev: mode.value } : mode,
    autorename: info.autorename,
    strictConflict: info.strict_conflict,
    ...(info.client_modified !== undefined && { clientModifiedMs: info.client_modified }),
  };
}
