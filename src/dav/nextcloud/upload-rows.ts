import type { FileEntry, FolderEntry } from '../../drive/files.ts';
import type { Piece, UnfinishedUpload } from '../../state/pieces/stored-upload.ts';
import { join, nameOf, type Path, ROOT } from '../../util/path.ts';
import { joined, sendMultistatus } from '../answers/multistatus.ts';
import { NO_DEAD, resourceRow } from '../answers/propfind-rows.ts';
import { clientOf } from '../clients.ts';
import type { Context } from '../context.ts';
import { PROPFIND_LIMITS } from '../methods/propfind.ts';
import { NO_LIVE_STATE } from '../properties/live-properties.ts';
import { PropertySelection, parsePropfind } from '../properties/property-selection.ts';
import { type Depth, depthOf } from '../request-headers.ts';
import { hrefOf } from '../resource-url.ts';

/** Maximum length of an answer that is sent at once, in bytes. */
const WHOLE_LENGTH = 256 * 1024;

/**
 * Answers PROPFIND, from which a client learns which pieces are there: at the root for all uploads, at an upload, or at one
 * `piece` of it. Rows are made as they are sent: all of them may not fit into memory.
 */
export async function answerUploads(
  { exchange, request, path, xml }: Context,
  uploads: readonly UnfinishedUpload[],
  piece: Piece | undefined,
): Promise<void> {
  const depth = depthOf(request.headers, ['0', '1', 'infinity'], 'infinity');
  const asked = parsePropfind(await xml.read(exchange, PROPFIND_LIMITS));
  const selection = new PropertySelection(asked, { client: clientOf(request), minimal: false });
  const entries = piece ? [fileOf(path, piece)] : entriesAt(path, uploads, depth);
  const rows = async function* () {
    for (const entry of entries) {
      const href = hrefOf(exchange, entry.path, entry.kind === 'folder');
      yield Buffer.from(resourceRow({ selection, state: NO_LIVE_STATE }, href, entry, NO_DEAD));
    }
  };
  await sendMultistatus(exchange, joined(rows()), { wholeLength: WHOLE_LENGTH });
}

/** Yields the root and `uploads`, or the only one of `uploads`, with as much below as `depth` says. */
function* entriesAt(
  path: Path,
  uploads: readonly UnfinishedUpload[],
  depth: Depth,
): Generator<FileEntry | FolderEntry> {
  const isRoot = path === ROOT;
  if (isRoot) yield folderOf(ROOT);
  if (isRoot && depth === '0') return;
  const showsPieces = depth === 'infinity' || (depth === '1' && !isRoot);
  for (const upload of uploads) {
    const folder = folderOf(join(ROOT, upload.id), upload.changedMs);
    yield folder;
    if (!showsPieces) continue;
    for (const piece of [...upload.pieces.values()]) yield fileOf(join(folder.path, piece.name), piece);
  }
}

function folderOf(path: Path, modifiedMs?: number): FolderEntry {
  const entry = { kind: 'folder', id: `upload ${path}`, path, name: nameOf(path) } as const;
  return modifiedMs === undefined ? entry : { ...entry, modifiedMs };
}

function fileOf(path: Path, { name, sizeBytes, storedMs }: Piece): FileEntry {
  return {
    ...{ kind: 'file', id: `piece ${path}`, path, name, sizeBytes },
    ...{ rev: `${storedMs}-${sizeBytes}`, modifiedMs: storedMs, committedMs: storedMs },
  };
}
