import type { FileEntry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { escapeAttribute } from '../xml/xml-writer.ts';
import { DAVGATE_NAMESPACE, OWNCLOUD_NAMESPACE, type PropertyName } from './property-names.ts';

/** One checksum as in `OC-Checksum`: `SHA1:da39…`. */
const CHECKSUM = /^[A-Z0-9-]{2,16}:[0-9a-zA-Z+/=]{1,128}$/i;
const CHECKSUMS_MAX = 8;

const NAME: PropertyName = { namespace: OWNCLOUD_NAMESPACE, name: 'checksums' };

export function isChecksums({ namespace, name }: PropertyName): boolean {
  return namespace === NAME.namespace && name === NAME.name;
}

/**
 * Returns the dead property that stores a client's checksums of the file's current content (`SHA1:…`); `undefined`
 * unless all of them are checksums. It is shown as `oc:checksums` as long as the content stays the same.
 */
export function checksumsProperty(file: FileEntry, checksums: readonly string[]): DeadProperty | undefined {
  if (checksums.length === 0 || checksums.length > CHECKSUMS_MAX) return undefined;
  if (!checksums.every((checksum) => CHECKSUM.test(checksum))) return undefined;
  // CHECKSUM allows only characters that need no escaping.
  return { ...NAME, xml: `${start(file)}<checksum>${checksums.join(' ')}</checksum></checksums>` };
}

/** Returns the content of `oc:checksums`; `undefined` when the stored checksums are of other content. */
export function checksumsOf(file: FileEntry, dead: readonly DeadProperty[]): string | undefined {
  const xml = dead.find(isChecksums)?.xml;
  const head = start(file);
  return xml?.startsWith(head) ? xml.slice(head.length, -'</checksums>'.length) : undefined;
}

function start({ contentHash, rev }: FileEntry): string {
  const content = escapeAttribute(contentHash ?? `rev ${rev}`);
  return `<checksums xmlns="${OWNCLOUD_NAMESPACE}" xmlns:g="${DAVGATE_NAMESPACE}" g:of="${content}">`;
}
