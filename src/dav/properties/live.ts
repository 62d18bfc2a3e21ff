import type { Entry, FreeSpace, SharedLink } from '../../drive/files.ts';
import type { Lock } from '../../state/locks.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { contentTypeOf } from '../answers/content-type.ts';
import { entityTagOf } from '../conditions/conditions.ts';
import { httpDate } from '../headers.ts';
import { lockDiscoveryXml } from '../locks/xml.ts';
import { DAV_NAMESPACE } from '../xml/element.ts';
import { escapeText } from '../xml/write.ts';
import { checksumsOf } from './checksums.ts';
import {
  DAVGATE_NAMESPACE,
  MICROSOFT_NAMESPACE,
  OWNCLOUD_NAMESPACE,
  type PropertyName,
  propertyKey,
} from './names.ts';

/** Why a property that is there cannot be shown now. */
export class Withheld {
  constructor(
    readonly status: number,
    readonly reason: string,
  ) {}
}

/** What a row needs beside its entry; all of it was asked for before the first row. */
export interface Facts {
  readonly nowMs: number;
  readonly locksOf: (entry: Entry) => readonly Lock[];
  /** Where the root of a lock that protects `entry` is. */
  readonly lockHref: (lock: Lock, entry: Entry) => string;
  readonly space: FreeSpace | undefined;
  readonly linkOf: (entry: Entry) => SharedLink | Withheld | undefined;
  /** Nothing of this matters for `entry`: its row is the same as without. */
  readonly isPlain: (entry: Entry) => boolean;
}

/** What has to be asked for before a property can be shown. */
export type Need = 'dead' | 'locks' | 'space' | 'link';

/** Facts of a resource that nothing was asked about. */
export const NO_FACTS: Facts = {
  nowMs: 0,
  locksOf: () => [],
  lockHref: () => '',
  space: undefined,
  linkOf: () => undefined,
  isPlain: () => true,
};

export interface LiveProperty extends PropertyName {
  /** In which answers to `allprop` it stands; `never`: only when it is named. */
  readonly allprop: 'lean' | 'full' | 'never';
  /** Left out of `propname` too. */
  readonly hidden?: true;
  readonly need?: Need;
  /** The inside of its element as XML; `undefined` for a resource that has no such property. */
  readonly value: (
    entry: Entry,
    facts: Facts,
    dead: readonly DeadProperty[],
  ) => string | Withheld | undefined;
}

type Value = LiveProperty['value'];
type Options = Partial<Pick<LiveProperty, 'allprop' | 'hidden' | 'need'>>;

const SUPPORTED_LOCKS = ['exclusive', 'shared']
  .map(
    (scope) =>
      `<D:lockentry><D:lockscope><D:${scope}/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>`,
  )
  .join('');

/** RFC 4918 §15, RFC 4331, and what clients ask for beyond. */
export const LIVE_PROPERTIES: readonly LiveProperty[] = [
  dav('resourcetype', (entry) => (entry.kind === 'folder' ? '<D:collection/>' : ''), { allprop: 'lean' }),
  dav('getcontentlength', (entry) => (entry.kind === 'file' ? `${entry.sizeBytes}` : undefined), {
    allprop: 'lean',
  }),
  dav('getlastmodified', lastModified, { allprop: 'lean' }),
  dav('creationdate', creationDate, { allprop: 'lean' }),
  dav('getetag', (entry) => (entry.kind === 'file' ? escapeText(entityTagOf(entry)) : undefined), {
    allprop: 'lean',
  }),
  // The root has no name, and clients that ask for names stumble over a resource without one.
  dav('displayname', (entry) => escapeText(entry.name || '/')),
  dav('getcontenttype', (entry) => (entry.kind === 'file' ? contentTypeOf(entry.name) : undefined)),
  dav('supportedlock', () => SUPPORTED_LOCKS),
  dav(
    'lockdiscovery',
    (entry, facts) =>
      lockDiscoveryXml(facts.locksOf(entry), (lock) => facts.lockHref(lock, entry), facts.nowMs),
    {
      need: 'locks',
    },
  ),
  quota('quota-available-bytes', (space) => space.availableBytes),
  quota('quota-used-bytes', (space) => space.usedBytes),
  // rclone sets this one, in seconds since 1970.
  dav('lastmodified', (entry) => seconds(entry.modifiedMs), { allprop: 'never', hidden: true }),
  named(MICROSOFT_NAMESPACE, 'Win32LastModifiedTime', lastModified),
  named(OWNCLOUD_NAMESPACE, 'fileid', (entry) => escapeText(entry.id)),
  named(OWNCLOUD_NAMESPACE, 'id', (entry) => escapeText(entry.id)),
  named(OWNCLOUD_NAMESPACE, 'permissions', (entry) => (entry.kind === 'folder' ? 'RDNVCK' : 'RDNVW')),
  named(
    OWNCLOUD_NAMESPACE,
    'checksums',
    (entry, _, dead) => (entry.kind === 'file' ? checksumsOf(entry, dead) : undefined),
    { need: 'dead' },
  ),
  named(DAVGATE_NAMESPACE, 'content-hash', (entry) =>
    entry.kind === 'file' ? entry.contentHash : undefined,
  ),
  named(DAVGATE_NAMESPACE, 'revision', (entry) =>
    entry.kind === 'file' ? escapeText(entry.rev) : undefined,
  ),
  named(DAVGATE_NAMESPACE, 'shared-link', sharedLink, { hidden: true, need: 'link' }),
];

const BY_KEY: ReadonlyMap<string, LiveProperty> = new Map(
  LIVE_PROPERTIES.map((property) => [propertyKey(property), property]),
);

/** The live property of this name, if there is one: it is computed, never stored. */
export function liveProperty(name: PropertyName): LiveProperty | undefined {
  return BY_KEY.get(propertyKey(name));
}

function dav(name: string, value: Value, options: Options = {}): LiveProperty {
  return { namespace: DAV_NAMESPACE, name, allprop: 'full', value, ...options };
}

function named(namespace: string, name: string, value: Value, options: Options = {}): LiveProperty {
  return { namespace, name, allprop: 'never', value, ...options };
}

/** RFC 4331. Only when named: a Finder that sees it mounts a minute and a half late. */
function quota(name: string, bytesOf: (space: FreeSpace) => number): LiveProperty {
  const value: Value = (entry, { space }) =>
    entry.kind === 'folder' && space ? `${bytesOf(space)}` : undefined;
  return dav(name, value, { allprop: 'never', hidden: true, need: 'space' });
}

function lastModified({ modifiedMs }: Entry): string | undefined {
  return modifiedMs === undefined ? undefined : httpDate(modifiedMs);
}

function seconds(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `${Math.floor(ms / 1000)}`;
}

/** The service keeps no time of creation: the earliest that is known of this content. */
function creationDate(entry: Entry): string | undefined {
  const ms = entry.kind === 'file' ? Math.min(entry.modifiedMs, entry.committedMs) : entry.modifiedMs;
  return ms === undefined ? undefined : `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

function sharedLink(entry: Entry, facts: Facts): string | Withheld | undefined {
  const link = facts.linkOf(entry);
  return link === undefined || link instanceof Withheld ? link : escapeText(link.url);
}
