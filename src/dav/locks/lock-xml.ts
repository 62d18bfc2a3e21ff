import type { Lock } from '../../state/locks.ts';
import { DavError } from '../errors.ts';
import { childrenOf, davChild, isDav, type XmlElement } from '../xml/xml-element.ts';
import { escapeText, standaloneContent } from '../xml/xml-writer.ts';

/** Maximum size of `DAV:owner`, in bytes. Each row repeats it; real ones are a name or an address. */
const OWNER_BYTES_MAX = 1024;

/** Maximum size of the locks in one row, in bytes. Each row of a listing repeats the locks of its folder. */
const LOCKS_BYTES_MAX = 64 * 1024;

/**
 * Parses `DAV:lockinfo`, the body of LOCK (RFC 4918 §14.11). `ownerXml` is the content of `owner` with all its namespace
 * declarations. Throws `DavError` 400, or 422 for an unknown lock type.
 */
export function parseLockInfo(root: XmlElement): {
  readonly scope: 'exclusive' | 'shared';
  readonly ownerXml: string;
} {
  if (!isDav(root, 'lockinfo'))
    throw new DavError(400, `the body of LOCK must be a DAV:lockinfo element, not ${root.name}`);
  const type = davChild(root, 'locktype');
  if (!type) throw new DavError(400, 'DAV:lockinfo has no DAV:locktype');
  if (!davChild(type, 'write')) throw new DavError(422, 'the only supported lock type is DAV:write');
  return { scope: scopeIn(root), ownerXml: ownerIn(root) };
}

function scopeIn(root: XmlElement): 'exclusive' | 'shared' {
  const scopes = childrenOf(root)
    .filter((child) => isDav(child, 'lockscope'))
    .flatMap(childrenOf);
  const [scope] = scopes;
  if (scope && scopes.length === 1) {
    if (isDav(scope, 'exclusive')) return 'exclusive';
    if (isDav(scope, 'shared')) return 'shared';
  }
  throw new DavError(400, 'DAV:lockinfo needs a DAV:lockscope with either DAV:exclusive or DAV:shared');
}

function ownerIn(root: XmlElement): string {
  const owner = davChild(root, 'owner');
  const xml = owner ? standaloneContent(owner).trim() : '';
  if (Buffer.byteLength(xml) > OWNER_BYTES_MAX)
    throw new DavError(400, `the DAV:owner of the lock is larger than ${OWNER_BYTES_MAX} bytes`);
  return xml;
}

/**
 * Renders `DAV:activelock`, for a document that binds `D` to `DAV:`. `href` is that of the lock's root; `secondsLeft` is
 * the remaining lifetime (RFC 4918 §14.29).
 */
export function activeLockXml(lock: Lock, href: string, secondsLeft = lock.timeoutSeconds): string {
  const owner = lock.ownerXml === '' ? '' : `<D:owner>${lock.ownerXml}</D:owner>`;
  return (
    '<D:activelock><D:locktype><D:write/></D:locktype>' +
    `<D:lockscope><D:${lock.scope}/></D:lockscope><D:depth>${lock.depth}</D:depth>${owner}` +
    `<D:timeout>Second-${secondsLeft}</D:timeout>` +
    `<D:locktoken><D:href>${escapeText(lock.token)}</D:href></D:locktoken>` +
    `<D:lockroot><D:href>${escapeText(href)}</D:href></D:lockroot></D:activelock>`
  );
}

/**
 * Renders the content of `DAV:lockdiscovery` at `nowMs`, in ms since 1970: as many locks as fit, the first ones first.
 * `hrefOf` returns the href of a lock's root.
 */
export function lockDiscoveryXml(
  locks: readonly Lock[],
  hrefOf: (lock: Lock) => string,
  nowMs: number,
): string {
  let shown = '';
  let bytes = 0;
  for (const lock of locks) {
    const secondsLeft = Math.max(0, Math.ceil((lock.expiresMs - nowMs) / 1000));
    const xml = activeLockXml(lock, hrefOf(lock), secondsLeft);
    bytes += Buffer.byteLength(xml);
    if (bytes > LOCKS_BYTES_MAX) break;
    shown += xml;
  }
  return shown;
}
