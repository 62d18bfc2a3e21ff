import type { FileEntry, FolderEntry } from '../../drive/files.ts';
import type { Piece, UnfinishedUpload } from '../../state/pieces/stored-upload.ts';
import { join, nameOf, type Path, ROOT } from '../../util/path.ts';
import { answerMultistatus } from '../answers/multistatus.ts';
import { resourceRow } from '../answers/propfind-rows.ts';
import { clientOf } from '../clients.ts';
import type { Context } from '../context.ts';
import { PROPFIND_LIMITS } from '../methods/propfind.ts';
import { NO_LIVE_STATE } from '../properties/live-properties.ts';
import { PropertySelection, parsePropfind } from '../properties/property-selection.ts';
import { depthOf, hrefOf } from '../request.ts';

/**
 * Answers PROPFIND, from which a client learns which pieces are there: at the root for all uploads, at an upload, or at one
 * `piece` of it.
 */
export async function answerUploads(
  { exchange, request, path, xml }: Context,
  uploads: readonly UnfinishedUpload[],
  piece: Piece | undefined,
): Promise<void> {
  const depth = depthOf(request.headers, ['0', '1', 'infinity'], 'infinity');
  const asked = parsePropfind(await xml.read(exchange, PROPFIND_LIMITS));
  const selection = new PropertySelection(asked, { client: clientOf(request), minimal: false });
  const row = (entry: FileEntry | FolderEntry) => {
    const href = hrefOf(exchange, entry.path, entry.kind === 'folder');
    return resourceRow({ selection, state: NO_LIVE_STATE }, href, entry, new Map());
  };
  const withPieces = (upload: UnfinishedUpload, isShown: boolean) => {
    const folder = folderOf(join(ROOT, upload.id), upload.changedMs);
    const pieces = isShown ? [...upload.pieces.values()] : [];
    return [folder, ...pieces.map((each) => fileOf(join(folder.path, each.name), each))];
  };
  const members = () => uploads.flatMap((upload) => withPieces(upload, depth === 'infinity'));
  const [upload] = uploads;
  if (path === ROOT)
    await answerMultistatus(exchange, [folderOf(ROOT), ...(depth === '0' ? [] : members())].map(row));
  else if (piece) await answerMultistatus(exchange, [row(fileOf(path, piece))]);
  else if (upload) await answerMultistatus(exchange, withPieces(upload, depth !== '0').map(row));
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
