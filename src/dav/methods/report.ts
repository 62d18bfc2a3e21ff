import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { unsupportedReport } from '../properties/reports.ts';
import { TOKEN_LENGTH_MAX } from '../sync/sync-token.ts';
import { DAV_NAMESPACE, type XmlElement } from '../xml/xml-element.ts';
import { XML_LIMITS, type XmlLimits } from '../xml/xml-reader.ts';
import { syncCollection } from './sync-collection.ts';
import { versionTree } from './version-tree.ts';

/** Limits of the body of a REPORT, which may bring a sync token back. */
const LIMITS: XmlLimits = { ...XML_LIMITS, sizeBytes: XML_LIMITS.sizeBytes + TOKEN_LENGTH_MAX };

type Report = (context: Context, root: XmlElement) => Promise<void>;

const REPORTS: ReadonlyMap<string, Report> = new Map([
  ['sync-collection', syncCollection],
  ['version-tree', versionTree],
]);

/** REPORT (RFC 3253 §3.6): the reports by which clients follow a folder, and learn the versions of a file. */
export async function report(context: Context): Promise<void> {
  const { exchange } = context;
  const root = await context.xml.read(exchange, LIMITS);
  if (!root) throw new DavError(400, 'the body of REPORT is missing; send the element of a report');
  const isKnown = root.namespace === DAV_NAMESPACE && exchange.above === undefined;
  const found = isKnown ? REPORTS.get(root.name) : undefined;
  if (!found)
    throw unsupportedReport(
      `there is no report ${root.name} here; DAV:supported-report-set lists the reports`,
    );
  await found(context, root);
}
