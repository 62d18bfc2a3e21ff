import { only, sendMultistatus } from '../answers/multistatus.ts';
import { deadPropertiesOf, resourceRow } from '../answers/propfind-rows.ts';
import { clientOf } from '../clients.ts';
import { type Context, entryHere } from '../context.ts';
import { DavError } from '../errors.ts';
import { liveStateOf } from '../properties/live-state.ts';
import { PropertySelection, propertyNamesIn } from '../properties/property-selection.ts';
import { unsupportedReport } from '../properties/reports.ts';
import { depthOf } from '../request-headers.ts';
import { hrefOf, requestHref } from '../resource-url.ts';
import { davChild, type XmlElement } from '../xml/xml-element.ts';

/** Maximum length of an answer that is sent at once, in bytes: more than the versions that the service lists. */
const WHOLE_LENGTH = 1024 * 1024;

/**
 * The report `DAV:version-tree` (RFC 3253 §3.7): a row for the file itself, which is its newest version, and one for each
 * older version, the newest first. Their hrefs are those below `/.versions`.
 */
export async function versionTree(context: Context, root: XmlElement): Promise<void> {
  const { exchange, request, drive, path } = context;
  const { historyFolders } = drive;
  depthOf(request.headers, ['0'], '0');
  if (!historyFolders) throw unsupportedReport('start davgate with --history-folders to see versions here');
  const prop = davChild(root, 'prop');
  const selection = new PropertySelection(
    { kind: 'prop', names: prop ? propertyNamesIn(prop) : [] },
    { client: clientOf(request), minimal: false },
  );
  const file = await entryHere(context);
  if (!file) throw new DavError(404, `${path} does not exist`);
  if (file.kind === 'folder' || historyFolders.owns(path))
    throw unsupportedReport(`${path} has no versions; only files of the drive have some`);
  const older = await drive.files.list(historyFolders.versionsOf(file.path), exchange.signal);
  const entries = [file, ...older.children];
  const state = await liveStateOf(context, selection, { entries: () => entries, isAlone: false });
  const dead = await deadPropertiesOf(context, selection, entries);
  const rows = entries.map((entry) => {
    const href = entry === file ? requestHref(exchange, path, false) : hrefOf(exchange, entry.path, false);
    return resourceRow({ selection, state }, href, entry, dead);
  });
  await sendMultistatus(exchange, only(Buffer.from(rows.join(''))), { wholeLength: WHOLE_LENGTH });
}
