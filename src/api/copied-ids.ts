import type { Moment } from '../util/clock.ts';
import { keyOf, type Path, relocate } from '../util/path.ts';
import type { Client } from './context.ts';
import { listingOf, statOf } from './list-folder.ts';
import type { Entry } from './remote.ts';
import type { Trouble } from './retry.ts';

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
export async function copiedTo(
  client: Client,
  { from, to, started }: Copy,
  how: { readonly signal: AbortSignal | undefined; readonly trouble: Trouble },
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
  signal: AbortSignal | undefined,
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
