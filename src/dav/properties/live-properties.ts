import type { Entry, FreeSpace, SharedLink } from '../../drive/files.ts';
import type { Lock } from '../../state/locks.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { mediaTypeOf } from '../../util/media-types.ts';
import { entityTagOf, httpDate } from '../conditions/preconditions.ts';
import { lockDiscoveryXml } from '../locks/lock-xml.ts';
import { DAV_NAMESPACE } from '../xml/xml-element.ts';
import { escapeText } from '../xml/xml-writer.ts';
import { checksumsOf, UnreadChecksums } from './checksums.ts';
import { creationMsOf } from './creation-date.ts';
import {
  DAVGATE_NAMESPACE,
  MICROSOFT_NAMESPACE,
  OWNCLOUD_NAMESPACE,
  type PropertyName,
  propertyKey,
} from './property-names.ts';
import { isoTime } from './property-times.ts';

/** A reason for which an existing property cannot be shown now. */
export class UnavailableProperty {
  constructor(
    readonly status: number,
    readonly reason: string,
  ) {}
}

/** The data that live properties are computed from, besides the entry. All of it is loaded before the first row. */
export interface LiveState {
  readonly nowMs: number;
  readonly locksOf: (entry: Entry) => readonly Lock[];
  /** Returns the href of the root of a lock that covers `entry`. */
  readonly lockHref: (lock: Lock, entry: Entry) => string;
  readonly quota: FreeSpace | undefined;
  /** Whether the user may not change the entry. */
  readonly isReadOnly: (entry: Entry) => boolean;
  /** The names of the reports that the entry has. */
  readonly reportsOf: (entry: Entry) => readonly string[];
  readonly syncTokenOf: (entry: Entry) => string | UnavailableProperty | undefined;
  readonly linkOf: (entry: Entry) => SharedLink | UnavailableProperty | undefined;
  /** Whether the row of `entry` would be the same with `NO_LIVE_STATE`. */
  readonly isEmptyFor: (entry: Entry) => boolean;
}

/** The state of resources without locks, quota and shared links, which the user may change. */
export const NO_LIVE_STATE: LiveState = {
  nowMs: 0,
  locksOf: () => [],
  lockHref: () => '',
  quota: undefined,
  isReadOnly: () => false,
  reportsOf: () => [],
  syncTokenOf: () => undefined,
  linkOf: () => undefined,
  isEmptyFor: () => true,
};

/** Data that must be loaded before a property can be shown. */
export type PropertyNeed = 'dead' | 'locks' | 'quota' | 'link' | 'rights' | 'reports' | 'sync';

export interface LiveProperty extends PropertyName {
  /** The answers to `allprop` that include it; `never`: it must be named. */
  readonly allprop: 'lean' | 'full' | 'never';
  /** Omitted from `propname` too. */
  readonly hidden?: true;
  readonly needs?: PropertyNeed;
  /** Returns the content of its element as XML; `undefined` for a resource without this property. */
  readonly value: (
    entry: Entry,
    state: LiveState,
    dead: readonly DeadProperty[],
  ) => string | UnavailableProperty | undefined;
}

type Value = LiveProperty['value'];
type Options = Partial<Pick<LiveProperty, 'allprop' | 'hidden' | 'needs'>>;

const SUPPORTED_LOCKS = ['exclusive', 'shared']
  .map(
    (scope) =>
      `<D:lockentry><D:lockscope><D:${scope}/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>`,
  )
  .join('');

/** RFC 5323 §3.3. */
const SEARCH_GRAMMARS =
  '<D:supported-query-grammar><D:grammar><D:basicsearch/></D:grammar></D:supported-query-grammar>';

const NAMED_ONLY = { allprop: 'never', hidden: true } as const;

/** The privileges of RFC 3744 §3 that a user has. */
const READING = ['read', 'read-current-user-privilege-set'];
const WRITING = ['write', 'write-properties', 'write-content', 'bind', 'unbind', 'unlock'];
const privileges = (names: readonly string[]) =>
  names.map((name) => `<D:privilege><D:${name}/></D:privilege>`).join('');
const MAY_READ = privileges(READING);
const MAY_WRITE = privileges([...READING, ...WRITING]);

/** The live properties of RFC 4918 §15 and RFC 4331, and others that clients ask for. */
export const LIVE_PROPERTIES: readonly LiveProperty[] = [
  dav('resourcetype', (entry) => (entry.kind === 'folder' ? '<D:collection/>' : ''), { allprop: 'lean' }),
  dav('getcontentlength', (entry) => (entry.kind === 'file' ? `${entry.sizeBytes}` : undefined), {
    allprop: 'lean',
  }),
  dav('getlastmodified', lastModified, { allprop: 'lean' }),
  dav('creationdate', creationDate, { allprop: 'lean', needs: 'dead' }),
  dav('getetag', (entry) => (entry.kind === 'file' ? escapeText(entityTagOf(entry)) : undefined), {
    allprop: 'lean',
  }),
  // The root has no name, and some clients fail on a resource without a displayname.
  dav('displayname', (entry) => escapeText(entry.name || '/')),
  dav('getcontenttype', (entry) =>
    entry.kind === 'file' ? (mediaTypeOf(entry.name) ?? 'application/octet-stream') : undefined,
  ),
  // LibreOffice opens a document for reading where no lock is offered, and fails where one is offered and refused.
  dav('supportedlock', (entry, state) => (state.isReadOnly(entry) ? '' : SUPPORTED_LOCKS), {
    needs: 'rights',
  }),
  dav('current-user-privilege-set', (entry, state) => (state.isReadOnly(entry) ? MAY_READ : MAY_WRITE), {
    ...{ allprop: 'never', hidden: true, needs: 'rights' },
  }),
  dav(
    'lockdiscovery',
    (entry, state) =>
      lockDiscoveryXml(state.locksOf(entry), (lock) => state.lockHref(lock, entry), state.nowMs),
    { needs: 'locks' },
  ),
  quotaProperty('quota-available-bytes', ({ availableBytes }) => availableBytes),
  quotaProperty('quota-used-bytes', ({ usedBytes }) => usedBytes),
  // What Finders before RFC 4331 know, in blocks. Newer ones name these beside the others, and prefer those.
  quotaProperty('quota', ({ usedBytes, availableBytes }) => blocksOf(usedBytes + availableBytes)),
  quotaProperty('quotaused', ({ usedBytes }) => blocksOf(usedBytes)),
  dav('supported-query-grammar-set', () => SEARCH_GRAMMARS, NAMED_ONLY),
  // RFC 3253 §3.1.5 and RFC 6578 §4 keep both out of `allprop`.
  dav('supported-report-set', supportedReports, { ...NAMED_ONLY, needs: 'reports' }),
  dav('sync-token', (entry, state) => (entry.kind === 'folder' ? state.syncTokenOf(entry) : undefined), {
    ...NAMED_ONLY,
    needs: 'sync',
  }),
  // RFC 3253 §3.2: what `version-tree` shows of a version.
  dav('version-name', (entry) => (entry.kind === 'file' ? escapeText(entry.rev) : undefined), NAMED_ONLY),
  // rclone sets this property, in seconds since 1970.
  dav('lastmodified', (entry) => seconds(entry.modifiedMs), { allprop: 'never', hidden: true }),
  named(MICROSOFT_NAMESPACE, 'Win32LastModifiedTime', lastModified),
  named(OWNCLOUD_NAMESPACE, 'fileid', (entry) => escapeText(entry.id)),
  named(OWNCLOUD_NAMESPACE, 'id', (entry) => escapeText(entry.id)),
  named(OWNCLOUD_NAMESPACE, 'permissions', permissions, { needs: 'rights' }),
  named(OWNCLOUD_NAMESPACE, 'checksums', checksums, { needs: 'dead' }),
  named(DAVGATE_NAMESPACE, 'content-hash', (entry) =>
    entry.kind === 'file' ? entry.contentHash : undefined,
  ),
  named(DAVGATE_NAMESPACE, 'revision', (entry) =>
    entry.kind === 'file' ? escapeText(entry.rev) : undefined,
  ),
  named(DAVGATE_NAMESPACE, 'deleted', (entry) =>
    entry.kind === 'file' ? timeText(entry.deletedMs) : undefined,
  ),
  named(DAVGATE_NAMESPACE, 'shared-link', sharedLink, { hidden: true, needs: 'link' }),
];

const BY_KEY: ReadonlyMap<string, LiveProperty> = new Map(
  LIVE_PROPERTIES.map((property) => [propertyKey(property), property]),
);

/** Returns the live property of this name, if there is one. */
export function liveProperty(name: PropertyName): LiveProperty | undefined {
  return BY_KEY.get(propertyKey(name));
}

function dav(name: string, value: Value, options: Options = {}): LiveProperty {
  return { namespace: DAV_NAMESPACE, name, allprop: 'full', value, ...options };
}

function named(namespace: string, name: string, value: Value, options: Options = {}): LiveProperty {
  return { namespace, name, allprop: 'never', value, ...options };
}

/** A quota property (RFC 4331). It must be named: a Finder that sees it takes 90 s longer to mount. */
function quotaProperty(name: string, bytesOf: (quota: FreeSpace) => number): LiveProperty {
  const value: Value = (entry, { quota }) =>
    entry.kind === 'folder' && quota ? `${bytesOf(quota)}` : undefined;
  return dav(name, value, { allprop: 'never', hidden: true, needs: 'quota' });
}

/** Size of a block in the old quota properties, in bytes. */
const QUOTA_BLOCK_BYTES = 512;

function blocksOf(bytes: number): number {
  return Math.ceil(bytes / QUOTA_BLOCK_BYTES);
}

/** The letters of ownCloud: may be shared, deleted, renamed, moved, written, filled with files and folders; `G`: read. */
function permissions(entry: Entry, state: LiveState): string {
  if (state.isReadOnly(entry)) return 'G';
  return entry.kind === 'folder' ? 'RDNVCK' : 'RDNVW';
}

function supportedReports(entry: Entry, { reportsOf }: LiveState): string {
  return reportsOf(entry)
    .map((name) => `<D:supported-report><D:report><D:${name}/></D:report></D:supported-report>`)
    .join('');
}

function lastModified({ modifiedMs }: Entry): string | undefined {
  return modifiedMs === undefined ? undefined : httpDate(modifiedMs);
}

function seconds(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${Math.floor(ms / 1000)}`;
}

function creationDate(entry: Entry, _: LiveState, dead: readonly DeadProperty[]): string | undefined {
  return timeText(creationMsOf(entry, dead));
}

function timeText(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : isoTime(ms);
}

function checksums(entry: Entry, _: LiveState, dead: readonly DeadProperty[]): ReturnType<Value> {
  if (entry.kind === 'folder') return undefined;
  const unread = dead.find((property) => property instanceof UnreadChecksums);
  return unread ? new UnavailableProperty(unread.status, unread.reason) : checksumsOf(entry, dead);
}

function sharedLink(entry: Entry, state: LiveState): string | UnavailableProperty | undefined {
  const link = state.linkOf(entry);
  return link === undefined || link instanceof UnavailableProperty ? link : escapeText(link.url);
}
