import { type Moment, momentNow } from '../util/clock.ts';
import { keyOf, nameOf, type Path, relocate } from '../util/path.ts';
import type {
  CreateFolderArg,
  CreateFolderResult,
  DeleteArg,
  DeleteResult,
  RelocationArg,
  RelocationResult,
} from '../wire/files.ts';
import type { Client } from './context.ts';
import { ApiError } from './errors.ts';
import { CallFailure } from './failure.ts';
import { listingOf, statOf } from './list-folder.ts';
import type { Entry, FolderEntry, Remote } from './remote.ts';
import { parsed, readNull, rpcRequest, slowRpcRequest } from './request.ts';
import type { Situation, Trouble } from './retry.ts';

type Tree = Pick<Remote, 'createFolder' | 'remove' | 'copy' | 'move'>;

/**
 * The calls that change the tree. After a lost answer each finds out whether it was carried out: a blind retry would meet
 * its own result and report a conflict, or nothing at the path.
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

/** After a lost answer, a folder that someone else made at the same moment counts as ours: nothing tells them apart. */
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
      // A folder in another letter case was there before: ours would have the requested name.
      const isOurs = found?.kind === 'folder' && root.ownName(found.name) === root.ownName(nameOf(path));
      return isOurs ? { result: found } : undefined;
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
    async resolve(situation) {
      const { failure, outcomeUnknown, trouble } = situation;
      if (!outcomeUnknown) return denialOf(client, { path, id }, situation, signal);
      if (failure.error.failure === 'not-found') return { result: undefined };
      const found = await statOf(client, path, { signal, trouble });
      const replaced = found && id !== undefined && found.id !== id;
      // For a permanent deletion the trash is not enough: the call must be repeated.
      return replaced || (!found && !permanent) ? { result: undefined } : undefined;
    },
  });
}

/** Reads the answer of `delete_v2`, which describes the removed entry. */
function readDeleted({ text }: { readonly text: string }): undefined {
  if (typeof parsed<DeleteResult>(text).metadata.name !== 'string') throw new TypeError('no metadata');
}

/** After a lost answer, content and age tell whether a copy is ours, because its id is new. */
async function copy(client: Client, from: Path, to: Path, signal: Signal): Promise<Entry> {
  const started = momentNow(client.clock);
  return client.caller.call({
    ...relocation(client, 'files/copy_v2', from, to),
    lane: 'commit',
    signal,
    async resolve(situation) {
      const { outcomeUnknown, trouble } = situation;
      const found = outcomeUnknown && (await copiedTo(client, { from, to, started }, { signal, trouble }));
      return found ? { result: found } : denialOf(client, { path: from }, situation, signal);
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
  // The id stays the same, so it tells after a lost answer whether the move was made.
  const moved = id ?? (await statOf(client, from, { signal }))?.id;
  return client.caller.call({
    ...call,
    lane: 'commit',
    signal,
    async resolve(situation) {
      const { outcomeUnknown, trouble } = situation;
      const found = outcomeUnknown && moved !== undefined && (await statOf(client, to, { signal, trouble }));
      if (found && found.id === moved) return { result: found };
      return denialOf(client, { path: from, id: moved }, situation, signal);
    },
  });
}

/** Number of calls that may be denied; a sixth would come ten seconds after the first. */
const DENIALS_MAX = 5;

/**
 * Returns the failure of a call that the service refused with `not-found` although the entry is there, as it sometimes does
 * just after the entry was made (rclone #8881): one that is retried a few times, and then a refusal that does not say that the
 * entry is gone. `id`: the entry's, if it is known.
 */
async function denialOf(
  client: Client,
  { path, id }: { readonly path: Path; readonly id?: string | undefined },
  { failure: { error }, number, trouble }: Situation,
  signal: Signal,
): Promise<{ readonly failure: CallFailure } | undefined> {
  if (error.failure !== 'not-found') return undefined;
  const found = await statOf(client, path, { signal, trouble });
  if (!found || (id !== undefined && found.id !== id)) return undefined;
  const message = `${error.message}, but the entry is there`;
  return {
    failure:
      number < DENIALS_MAX
        ? new CallFailure('server', new ApiError('unavailable', message, error.details))
        : new CallFailure('refused', new ApiError('no-permission', message, error.details)),
  };
}

/** Returns the common parts of a move and a copy. Neither overwrites. */
function relocation({ root }: Client, route: string, from: Path, to: Path) {
  const arg: RelocationArg = {
    from_path: root.belowRoot(from),
    to_path: root.belowRoot(to),
    autorename: false,
    // davgate cannot ask the user, who understands a refusal.
    allow_ownership_transfer: false,
  };
  return {
    request: slowRpcRequest(route, arg),
    read: ({ text }: { readonly text: string }) => root.entry(parsed<RelocationResult>(text).metadata),
  };
}

interface Copy {
  readonly from: Path;
  readonly to: Path;
  /** Time of the first try. */
  readonly started: Moment;
}

/**
 * Returns the entry at `to` if a copy with a lost answer has made it. A file must be newer than the call and have the
 * same content. Folders have no times: a folder counts as the copy when everything below is equal.
 */
async function copiedTo(
  client: Client,
  { from, to, started }: Copy,
  how: { readonly signal: Signal; readonly trouble: Trouble },
): Promise<Entry | undefined> {
  const [source, target] = await Promise.all([statOf(client, from, how), statOf(client, to, how)]);
  if (!source || !target || source.id === target.id || source.kind !== target.kind) return undefined;
  const isCopy =
    target.kind === 'file'
      ? isNewCopy(source, target, client.caller.serviceTime(started))
      : sameContents(
          await contentsOf(client, from, from, how.signal),
          await contentsOf(client, to, from, how.signal),
        );
  return isCopy ? target : undefined;
}

function isNewCopy(source: Entry, target: Entry, startedServiceMs: number): boolean {
  if (source.kind !== 'file' || target.kind !== 'file') return false;
  // The service's times are whole seconds.
  if (target.committedMs < Math.floor(startedServiceMs / 1000) * 1000) return false;
  return contentOf(source) === contentOf(target);
}

function contentOf(entry: Entry): string {
  return entry.kind === 'file' ? `${entry.sizeBytes} ${entry.contentHash ?? entry.rev}` : 'folder';
}

/** Returns everything below `folder`, by the key that it would have below `base`. */
async function contentsOf(
  client: Client,
  folder: Path,
  base: Path,
  signal: Signal,
): Promise<Map<string, string>> {
  const contents = new Map<string, string>();
  for await (const { changes } of listingOf(client).list(folder, { recursive: true }, signal)) {
    for (const change of changes) {
      if (change.kind === 'put')
        contents.set(keyOf(relocate(change.entry.path, folder, base)), contentOf(change.entry));
    }
  }
  return contents;
}

function sameContents(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && [...one].every(([key, content]) => other.get(key) === content);
}
