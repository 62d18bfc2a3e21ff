import type { FileEntry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { escapeAttribute } from '../xml/write.ts';
import { DAVGATE_NAMESPACE, OWNCLOUD_NAMESPACE, type PropertyName } from './names.ts';

/** As in `OC-Checksum`: `SHA1:da39…`. */
const CHECKSUM = /^[A-Z0-9-]{2,16}:[0-9a-zA-Z+/=]{1,128}$/i;
const CHECKSUMS_MAX = 8;

const NAME: PropertyName = { namespace: OWNCLOUD_NAMESPACE, name: 'checksums' };

export function isChecksums({ namespace, name }: PropertyName): boolean {
  return namespace === NAME.namespace && name === NAME.name;
}

/**
 * What a client said of a file's content (`SHA1:…`), to be kept among its dead properties and shown as
 * `oc:checksums` for as long as the file has this content. `undefined` when the words are no checksums.
 */
export function checksumsProperty(file: FileEntry, checksums: readonly string[]): DeadProperty | undefined {
  if (checksums.length === 0 || checksums.length > CHECKSUMS_MAX) return undefined;
  if (!checksums.every((checksum) => CHECKSUM.test(checksum))) return undefined;
  // Each is of letters that need no escape.
  return { ...NAME, xml: `${start(file)}<checksum>${checksums.join(' ')}</checksum></checksums>` };
}

/** The inside of `oc:checksums`: what was said of the content that `file` has now. */
export function checksumsOf(file: FileEntry, dead: readonly DeadProperty[]): string | undefined {
  const xml = dead.find(isChecksums)?.xml;
  const head = start(file);
  return xml?.startsWith(head) ? xml.slice(head.length, -'</checksums>'.length) : undefined;
}

function start({ contentHash, rev }: FileEntry): string {
  const content = escapeAttribute(contentHash ?? `rev ${rev}`);
  return `<checksums xmlns="${OWNCLOUD_NAMESPACE}" xmlns:g="${DAVGATE_NAMESPACE}" g:of="${content}">`;
}
