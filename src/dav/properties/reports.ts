import type { Entry } from '../../drive/files.ts';
import type { Drive } from '../context.ts';
import { DavError } from '../errors.ts';

/** Returns the names of the reports (RFC 3253 §3.1.5) that a resource has. */
export function reportsOf({ historyFolders, changeLog }: Drive, { kind, path }: Entry): readonly string[] {
  if (historyFolders?.owns(path)) return [];
  if (kind === 'folder') return changeLog ? ['sync-collection'] : [];
  return historyFolders ? ['version-tree'] : [];
}

/** Returns the refusal of a report that a resource does not have (RFC 3253 §3.6). */
export function unsupportedReport(message: string): DavError {
  return new DavError(403, message, { precondition: 'supported-report' });
}
