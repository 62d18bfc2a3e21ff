import { createHash, type Hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { FileError } from '../../drive/errors.ts';
import type { FileEntry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { DavError } from '../errors.ts';
import { escapeAttribute } from '../xml/xml-writer.ts';
import {
  DAVGATE_NAMESPACE,
  isSameProperty,
  OWNCLOUD_NAMESPACE,
  type PropertyName,
} from './property-names.ts';

/** One checksum as in `OC-Checksum`: `SHA1:da39…`. */
const CHECKSUM = /^[A-Z0-9-]{2,16}:[0-9a-zA-Z+/=]{1,128}$/i;
/** Maximum number of checksums of one file. */
export const CHECKSUMS_MAX = 8;

const NAME: PropertyName = { namespace: OWNCLOUD_NAMESPACE, name: 'checksums' };

/** Whether a text has the form of a checksum in `OC-Checksum`. */
export function isChecksum(text: string): boolean {
  return CHECKSUM.test(text);
}

export function isChecksums(name: PropertyName): boolean {
  return isSameProperty(name, NAME);
}

/** Stands among the dead properties of a file whose checksums could not be computed now. */
export class UnreadChecksums implements DeadProperty {
  readonly namespace = NAME.namespace;
  readonly name = NAME.name;
  readonly xml = '';

  constructor(
    readonly status: number,
    readonly reason: string,
  ) {}
}

/**
 * Returns the dead property that stores checksums of the file's current content (`SHA1:…`); `undefined` unless all of them
 * are checksums. It is shown as `oc:checksums` as long as the content stays the same.
 */
export function checksumsProperty(file: FileEntry, checksums: readonly string[]): DeadProperty | undefined {
  if (checksums.length === 0 || checksums.length > CHECKSUMS_MAX) return undefined;
  if (!checksums.every(isChecksum)) return undefined;
  // CHECKSUM allows only characters that need no escaping.
  return {
    ...NAME,
    xml: `${start(file)}<checksum>${checksums.join(' ')}</checksum></checksums>`,
  };
}

/** Returns the content of `oc:checksums`; `undefined` when the stored checksums are of other content. */
export function checksumsOf(file: FileEntry, dead: readonly DeadProperty[]): string | undefined {
  const xml = dead.find(isChecksums)?.xml;
  const head = start(file);
  return xml?.startsWith(head) ? xml.slice(head.length, -'</checksums>'.length) : undefined;
}

/** Returns the stored checksums of the file's current content, each as `SHA1:…`. */
export function checksumListOf(file: FileEntry, dead: readonly DeadProperty[]): readonly string[] {
  return /<checksum>([^<]*)<\/checksum>/.exec(checksumsOf(file, dead) ?? '')?.[1]?.split(' ') ?? [];
}

function start({ contentHash, rev }: FileEntry): string {
  const content = escapeAttribute(contentHash ?? `rev ${rev}`);
  return `<checksums xmlns="${OWNCLOUD_NAMESPACE}" xmlns:g="${DAVGATE_NAMESPACE}" g:of="${content}">`;
}

/** A checksum that the client gave for the body. */
interface Digest {
  /** The header's name. */
  readonly header: string;
  readonly algorithm: string;
  readonly expected: Buffer;
}

/** The algorithms that are checked, by their names in headers; others (Adler-32, CRC-32) are ignored. */
const ALGORITHMS: Readonly<Record<string, { readonly algorithm: string; readonly sizeBytes: number }>> = {
  MD5: { algorithm: 'md5', sizeBytes: 16 },
  SHA: { algorithm: 'sha1', sizeBytes: 20 },
  SHA1: { algorithm: 'sha1', sizeBytes: 20 },
  'SHA-256': { algorithm: 'sha256', sizeBytes: 32 },
  SHA256: { algorithm: 'sha256', sizeBytes: 32 },
  'SHA-512': { algorithm: 'sha512', sizeBytes: 64 },
  SHA512: { algorithm: 'sha512', sizeBytes: 64 },
};

/** The headers of a request that contain checksums of its body. */
export const CHECKSUM_HEADERS = [
  'oc-checksum',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
] as const;

/**
 * Returns the checksums in the headers of a request: `OC-Checksum` (`SHA1:hex`, rclone), `Content-MD5`, `Digest`
 * (RFC 3230), `Content-Digest` and `Repr-Digest` (RFC 9530). Throws `DavError` 400 for one of a wrong length.
 */
export function digestsIn(headers: IncomingHttpHeaders): Digest[] {
  return [
    ...ocChecksums(headers).map((pair) => digestOf('OC-Checksum', pair, ':', 'hex')),
    ...list(headers['content-md5']).map((value) => digestOf('Content-MD5', `MD5=${value}`, '=', 'base64')),
    ...list(headers['digest']).map((pair) => digestOf('Digest', pair, '=', 'base64')),
    ...list(headers['content-digest']).map((pair) => digestOf('Content-Digest', pair, '=', 'base64')),
    ...list(headers['repr-digest']).map((pair) => digestOf('Repr-Digest', pair, '=', 'base64')),
  ].filter((digest) => digest !== undefined);
}

/** Returns the checksums in `OC-Checksum`, each as `SHA1:da39…`. */
export function ocChecksums(headers: IncomingHttpHeaders): string[] {
  return String(headers['oc-checksum'] ?? '')
    .split(/[\s,]+/)
    .filter(Boolean);
}

/**
 * Returns `body`, whose stream ends with a `FileError` when a checksum does not match. Nothing is committed then, because
 * a commit waits for the end of the stream.
 */
export function verifiedBody(
  body: AsyncIterable<Uint8Array>,
  digests: readonly Digest[],
): AsyncIterable<Uint8Array> {
  return digests.length === 0 ? body : verify(body, digests);
}

async function* verify(
  body: AsyncIterable<Uint8Array>,
  digests: readonly Digest[],
): AsyncGenerator<Uint8Array> {
  const hashes = new Map<string, Hash>(digests.map(({ algorithm }) => [algorithm, createHash(algorithm)]));
  for await (const piece of body) {
    for (const hash of hashes.values()) hash.update(piece);
    yield piece;
  }
  const found = new Map([...hashes].map(([algorithm, hash]) => [algorithm, hash.digest()]));
  const wrong = digests.find(({ algorithm, expected }) => !found.get(algorithm)?.equals(expected));
  if (wrong)
    throw new FileError(
      'checksum',
      `the body does not match the checksum in ${wrong.header}; nothing was written, send it again`,
    );
}

function list(header: string | string[] | undefined): string[] {
  return String(header ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean);
}

/** Returns `undefined` for an algorithm that is not checked. */
function digestOf(
  header: string,
  pair: string,
  separator: string,
  encoding: 'hex' | 'base64',
): Digest | undefined {
  const at = pair.indexOf(separator);
  const name = pair.slice(0, Math.max(0, at)).trim().toUpperCase();
  const known = Object.hasOwn(ALGORITHMS, name) ? ALGORITHMS[name] : undefined;
  if (!known) return undefined;
  // RFC 9530 puts the value between colons.
  const value = pair.slice(at + 1).replace(/^:|:$/g, '');
  const expected = Buffer.from(value, encoding);
  if (expected.length !== known.sizeBytes)
    throw new DavError(400, `the ${header} header does not contain a valid ${name} checksum`);
  return { header, algorithm: known.algorithm, expected };
}
