import type { Entry, FolderEntry } from '../../drive/files.ts';
import { namesOf, type Path } from '../../util/path.ts';
import { joined, responseXml, sendMultistatus, statusLine } from '../answers/multistatus.ts';
import { deadPropertiesOf, LOADED_TOGETHER, type RowContext, resourceRow } from '../answers/propfind-rows.ts';
import { clientOf } from '../clients.ts';
import { type Context, presentFiles } from '../context.ts';
import { DavError } from '../errors.ts';
import { liveStateOf } from '../properties/live-state.ts';
import { PropertySelection, propertyNamesIn } from '../properties/property-selection.ts';
import { unsupportedReport } from '../properties/reports.ts';
import { type Depth, depthOf } from '../request-headers.ts';
import { encodeSegment, requestHref } from '../resource-url.ts';
import type { SyncedFolder } from '../sync/members.ts';
import { invalidToken, type SyncPage, type SyncRow, syncPage } from '../sync/sync-page.ts';
import { type SyncLevel, type SyncState, syncStateIn, syncTokenOf } from '../sync/sync-token.ts';
import { davChild, textOf, type XmlElement } from '../xml/xml-element.ts';
import { escapeText } from '../xml/xml-writer.ts';

/** Maximum number of rows in one answer. The client asks for the next ones with the new token. */
const ROWS_MAX = 10_000;

/** Maximum length of an answer that is sent at once, in bytes. */
const WHOLE_LENGTH = 256 * 1024;

/** The body of a `DAV:sync-collection` report (RFC 6578 §6.1). */
interface SyncRequest {
  /** `''` for the initial report. */
  readonly token: string;
  readonly level: SyncLevel;
  readonly rowsMax: number;
  readonly prop: XmlElement;
}

/** The report `DAV:sync-collection` (RFC 6578), by which clients follow a folder. */
export async function syncCollection(context: Context, root: XmlElement): Promise<void> {
  const { exchange, request, drive, path } = context;
  const wanted = parseSyncCollection(root, depthOf(request.headers, ['0', '1', 'infinity'], '0'));
  const files = presentFiles(drive);
  const folder = files.known(path) ?? (await files.stat(path, exchange.signal));
  if (!folder) throw new DavError(404, `${path} does not exist`);
  if (folder.kind === 'file') throw unsupportedReport(`${path} is a file; only folders can be followed`);
  if (!drive.changeLog) throw unsupportedReport('this drive cannot be followed');
  const synced = { files, log: drive.changeLog, folder, signal: exchange.signal };
  const page = await syncPage(synced, await stateFor(synced, wanted), wanted);
  const next = await syncTokenOf(drive.changeLog, folder, page.state);
  await answerPage(context, folder, wanted, page, next);
}

/**
 * A client of earlier drafts gives the level as the depth, alone (RFC 6578 appendix A) or besides. Throws `DavError` 400, and 507
 * for a limit of no rows.
 */
function parseSyncCollection(root: XmlElement, depth: Depth): SyncRequest {
  const [token, level, prop, limit] = ['sync-token', 'sync-level', 'prop', 'limit'].map((name) =>
    davChild(root, name),
  );
  const ofDepth = { 0: undefined, 1: '1', infinity: 'infinite' }[depth];
  const levelText = level ? textOf(level).trim() : ofDepth;
  if (!token || !prop || (levelText !== '1' && levelText !== 'infinite'))
    throw new DavError(
      400,
      'DAV:sync-collection must contain DAV:sync-token, DAV:prop, and DAV:sync-level with 1 or infinite',
    );
  if (ofDepth !== undefined && ofDepth !== levelText)
    throw new DavError(400, `Depth must be 0 here; ${depth} contradicts DAV:sync-level ${levelText}`);
  const results = limit && davChild(limit, 'nresults');
  const text = results ? textOf(results).trim() : `${ROWS_MAX}`;
  if (!/^\d+$/.test(text)) throw new DavError(400, 'DAV:nresults must be a number');
  if (Number(text) === 0)
    throw new DavError(507, 'a report of no rows tells nothing; ask for at least one', {
      precondition: 'number-of-matches-within-limits',
    });
  return { token: textOf(token).trim(), level: levelText, rowsMax: Math.min(Number(text), ROWS_MAX), prop };
}

/** Throws `DavError` 403 for a token of another folder or level. */
async function stateFor(
  { log, folder }: SyncedFolder,
  { token, level }: SyncRequest,
): Promise<SyncState | undefined> {
  if (token === '') return undefined;
  const state = await syncStateIn(log, folder, token);
  if (!state || (state.level !== undefined && state.level !== level)) throw invalidToken();
  return state;
}

async function answerPage(
  context: Context,
  folder: FolderEntry,
  { prop }: SyncRequest,
  { rows, isPartial }: SyncPage,
  nextToken: string,
): Promise<void> {
  const { exchange, request, path } = context;
  const selection = new PropertySelection(
    { kind: 'prop', names: propertyNamesIn(prop) },
    { client: clientOf(request), minimal: false },
  );
  const entries = rows.flatMap((row) => ('entry' in row ? row.entry : []));
  const live = await liveStateOf(context, selection, { entries: () => entries, isAlone: false });
  const top = requestHref(exchange, path, true);
  const hrefs = new MemberHrefs(top, folder);
  const pieces = async function* () {
    for (let start = 0; start < rows.length; start += LOADED_TOGETHER)
      yield await rowsXml(
        context,
        { selection, state: live },
        hrefs,
        rows.slice(start, start + LOADED_TOGETHER),
      );
    if (isPartial) yield Buffer.from(partialXml(top));
    yield Buffer.from(`<D:sync-token>${escapeText(nextToken)}</D:sync-token>`);
  };
  await sendMultistatus(exchange, joined(pieces()), { wholeLength: WHOLE_LENGTH });
}

async function rowsXml(
  context: Context,
  rowContext: RowContext,
  hrefs: MemberHrefs,
  rows: readonly SyncRow[],
): Promise<Uint8Array> {
  const entries = rows.flatMap((row) => ('entry' in row ? row.entry : []));
  const dead = await deadPropertiesOf(context, rowContext.selection, entries);
  const texts = rows.map((row) =>
    'entry' in row
      ? resourceRow(rowContext, hrefs.of(row.entry.path, row.entry.kind), row.entry, dead)
      : responseXml(hrefs.of(row.gone, 'file'), `<D:status>${statusLine(404)}</D:status>`),
  );
  return Buffer.from(texts.join(''));
}

/** The row of the followed folder that tells that more is to come (RFC 6578 §3.6). */
function partialXml(href: string): string {
  const error = '<D:error><D:number-of-matches-within-limits/></D:error>';
  return responseXml(href, `<D:status>${statusLine(507)}</D:status>${error}`);
}

/** The hrefs of a folder's members, which begin with the folder's own. */
class MemberHrefs {
  readonly #depth: number;

  constructor(
    private readonly top: string,
    folder: FolderEntry,
  ) {
    this.#depth = namesOf(folder.path).length;
  }

  /** Nobody knows whether a removed member was a folder: its href has no slash at its end. */
  of(path: Path, kind: Entry['kind']): string {
    const below = namesOf(path).slice(this.#depth).map(encodeSegment).join('/');
    return this.top + below + (kind === 'folder' ? '/' : '');
  }
}
