import type { Lock } from '../../state/locks.ts';
import { DavError } from '../errors.ts';
import { childrenOf, davChild, isDav, type XmlElement } from '../xml/element.ts';
import { escapeText, standaloneContent } from '../xml/write.ts';

/** Maximum size of an owner, in bytes. It is shown with each lock of each row; real ones are a name or an address. */
const OWNER_BYTES_MAX = 1024;

/** Maximum size of the locks of one row, in bytes: a listing repeats those of its folder in each row. */
const LOCKS_BYTES_MAX = 64 * 1024;

/**
 * What a LOCK body asks for (RFC 4918 §14.11). `ownerXml` is the inside of `owner` as XML that stands by
 * itself. Throws `DavError` 400, or 422 for a lock type that we do not know.
 */
export function parseLockInfo(root: XmlElement): {
  readonly scope: 'exclusive' | 'shared';
  readonly ownerXml: string;
} {
  if (!isDav(root, 'lockinfo'))
    throw new DavError(400, `the body of LOCK must be a DAV:lockinfo element, not ${root.name}`);
  const type = davChild(root, 'locktype');
  if (!type) throw new DavError(400, 'the lockinfo has no DAV:locktype');
  if (!davChild(type, 'write')) throw new DavError(422, 'the only lock type here is DAV:write');
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
  throw new DavError(400, 'the lockinfo needs a DAV:lockscope of either DAV:exclusive or DAV:shared');
}

function ownerIn(root: XmlElement): string {
  const owner = davChild(root, 'owner');
  const xml = owner ? standaloneContent(owner).trim() : '';
  if (Buffer.byteLength(xml) > OWNER_BYTES_MAX)
    throw new DavError(400, `the DAV:owner of a lock may have ${OWNER_BYTES_MAX} bytes`);
  return xml;
}

/**
 * One lock as `DAV:activelock`, for a document that binds `D` to `DAV:`. `href` is where the lock's root is.
 * `secondsLeft` is for a lock that was taken earlier (RFC 4918 §14.29).
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
 * The inside of `DAV:lockdiscovery`: these locks at `nowMs` (milliseconds since 1970), the first of them when all are
 * too long. `hrefOf` says where a lock's root is.
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
