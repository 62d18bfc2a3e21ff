import { momentNow } from '../util/clock.ts';
import { nameOf, type Path } from '../util/path.ts';
import type {
  CreateFolderArg,
  CreateFolderResult,
  DeleteArg,
  DeleteResult,
  RelocationArg,
  RelocationResult,
} from '../wire/files.ts';
import type { Situation } from './caller.ts';
import type { Client } from './context.ts';
import { copiedTo } from './copied-ids.ts';
import { statOf } from './list-folder.ts';
import type { Entry, FolderEntry, Remote } from './remote.ts';
import { parsed, readNull, rpcRequest, slowRpcRequest } from './request.ts';

type Tree = Pick<Remote, 'createFolder' | 'remove' | 'copy' | 'move'>;

/**
 * Changes of the tree. Each of them, when its answer is lost, finds out from what is there whether it
 * was done: tried blindly again it would meet its own work and report a conflict, or nothing there.
 */
export function treeOf(client: Client): Tree {
  return {
    createFolder: (path, signal) => createFolder(client, path, signal),
    remove: (path, options, signal) => remove(client, path, options, signal),
    copy: (from, to, signal) => copy(client, from, to, signal),
    move: (from, to, signal, id) => move(client, { from, to, id }, signal),
  };
}

type Signal = AbortSignal | undefined;

/** Nothing tells a folder from one that another made in that moment: after a lost answer both are ours. */
async function createFolder(client: Client, path: Path, signal: Signal): Promise<FolderEntry> {
  const { caller, root } = client;
  const arg: CreateFolderArg = { path: root.belowRoot(path), autorename: false };
  return caller.call({
    request: rpcRequest('files/create_folder_v2', arg),
    lane: 'commit',
    signal,
    read: ({ text }) => root.folder(parsed<CreateFolderResult>(text).metadata),
    async resolve({ outcomeUnknown, trouble }) {
      if (!outcomeUnknown) return undefined;
      const found = await statOf(client, path, { signal, trouble });
      // One in another case was there before: ours would be called as we asked.
      return found?.kind === 'folder' && found.name === nameOf(path) ? { result: found } : undefined;
    },
  });
}

async function remove(
  client: Client,
  path: Path,
  { permanent, id, rev }: { readonly permanent: boolean; readonly id?: string; readonly rev?: string },
  signal: Signal,
): Promise<void> {
  const arg: DeleteArg = { path: client.root.belowRoot(path), ...(rev !== undefined && { parent_rev: rev }) };
  return client.caller.call({
    request: slowRpcRequest(permanent ? 'files/permanently_delete' : 'files/delete_v2', arg),
    lane: 'commit',
    signal,
    read: permanent ? readNull : readDeleted,
    async resolve({ failure, outcomeUnknown, trouble }) {
      if (!outcomeUnknown) return undefined;
      if (failure.error.failure === 'not-found') return { result: undefined };
      const found = await statOf(client, path, { signal, trouble });
      const replaced = found && id !== undefined && found.id !== id;
      // What was only moved to the trash is not yet gone for good: that call has to be made again.
      return replaced || (!found && !permanent) ? { result: undefined } : undefined;
    },
  });
}

/** `delete_v2` answers with what was there. */
function readDeleted({ text }: { readonly text: string }): undefined {
  if (typeof parsed<DeleteResult>(text).metadata.name !== 'string') throw new TypeError('no metadata');
}

/** A copy has an id of its own, so content and age tell whether it is ours. */
async function copy(client: Client, from: Path, to: Path, signal: Signal): Promise<Entry> {
  const started = momentNow(client.clock);
  return client.caller.call({
    ...relocation(client, 'files/copy_v2', from, to),
    lane: 'commit',
    signal,
    async resolve({ outcomeUnknown, trouble }) {
      const found = outcomeUnknown && (await copiedTo(client, { from, to, started }, { signal, trouble }));
      return found ? { result: found } : undefined;
    },
  });
}

interface Move {
  readonly from: Path;
  readonly to: Path;
  readonly id: string | undefined;
}

async function move(client: Client, { from, to, id }: Move, signal: Signal): Promise<Entry> {
  const call = relocation(client, 'files/move_v2', from, to);
  // An id stays with what is moved, so it alone can tell afterwards what has become of it.
  const moved = id ?? (await statOf(client, from, { signal }))?.id;
  return client.caller.call({
    ...call,
    lane: 'commit',
    signal,
    async resolve({ outcomeUnknown, trouble }: Situation) {
      if (!outcomeUnknown || moved === undefined) return undefined;
      const found = await statOf(client, to, { signal, trouble });
      return found?.id === moved ? { result: found } : undefined;
    },
  });
}

/** What move and copy have in common on the wire. Neither overwrites. */
function relocation({ root }: Client, route: string, from: Path, to: Path) {
  const arg: RelocationArg = {
    from_path: root.belowRoot(from),
    to_path: root.belowRoot(to),
    autorename: false,
    // Davgate has asked nobody, and a refusal is what the person can understand.
    allow_ownership_transfer: false,
  };
  return {
    request: slowRpcRequest(route, arg),
    read: ({ text }: { readonly text: string }) => root.entry(parsed<RelocationResult>(text).metadata),
  };
}
