import type { Entry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { propstatXml } from '../answers/multistatus.ts';
import type { Client } from '../clients.ts';
import { DavError } from '../errors.ts';
import { childrenOf, davChild, isDav, type XmlElement } from '../xml/xml-element.ts';
import { isChecksums } from './checksums.ts';
import {
  LIVE_PROPERTIES,
  type LiveProperty,
  type LiveState,
  liveProperty,
  type PropertyNeed,
  UnavailableProperty,
} from './live-properties.ts';
import {
  emptyProperty,
  isSameProperty,
  MICROSOFT_NAMESPACE,
  type PropertyName,
  type PropertyTags,
  propertyKey,
  propertyTags,
} from './property-names.ts';

/** Maximum number of properties in a PROPFIND. Each adds an element to each row; real clients name under thirty. */
const NAMES_MAX = 256;

/** Maximum length of their names and namespaces together: each row may repeat them. */
const NAMES_LENGTH_MAX = 32 * 1024;

/** The body of a PROPFIND (RFC 4918 §14.20). `names` of `allprop` are those in `include`. */
export type PropfindRequest =
  | { readonly kind: 'prop' | 'allprop'; readonly names: readonly PropertyName[] }
  | { readonly kind: 'propname' };

/** Parses `DAV:propfind`. An absent body means `allprop` (RFC 4918 §9.1). Throws `DavError` 400. */
export function parsePropfind(root: XmlElement | undefined): PropfindRequest {
  if (!root) return { kind: 'allprop', names: [] };
  if (!isDav(root, 'propfind'))
    throw new DavError(400, `the body of PROPFIND must be a DAV:propfind element, not ${root.name}`);
  const choices = childrenOf(root).filter((child) =>
    ['prop', 'allprop', 'propname'].some((name) => isDav(child, name)),
  );
  const [choice] = choices;
  if (!choice || choices.length > 1)
    throw new DavError(
      400,
      'DAV:propfind must contain exactly one of DAV:prop, DAV:allprop and DAV:propname',
    );
  if (isDav(choice, 'propname')) return { kind: 'propname' };
  if (isDav(choice, 'prop')) return { kind: 'prop', names: propertyNamesIn(choice) };
  const include = davChild(root, 'include');
  return { kind: 'allprop', names: include ? propertyNamesIn(include) : [] };
}

/** Returns the names of the elements in `container`, each once. Throws `DavError` 400 for too many or too long ones. */
export function propertyNamesIn(container: XmlElement): PropertyName[] {
  const names = new Map<string, PropertyName>();
  let length = 0;
  for (const { namespace, name } of childrenOf(container)) {
    length += namespace.length + name.length;
    names.set(propertyKey({ namespace, name }), { namespace, name });
    if (names.size > NAMES_MAX)
      throw new DavError(400, `the request names more than ${NAMES_MAX} properties, the maximum`);
    if (length > NAMES_LENGTH_MAX)
      throw new DavError(
        400,
        `the names of the properties have more than ${NAMES_LENGTH_MAX} characters, the maximum`,
      );
  }
  return [...names.values()];
}

export interface SelectionOptions {
  readonly client: Pick<Client, 'allprop' | 'reportsQuota'>;
  /** Omits missing properties (`Prefer: return=minimal`, RFC 8144 §2.1; Office's `Brief: t`). */
  readonly minimal: boolean;
}

interface SelectedProperty {
  readonly property: LiveProperty;
  readonly tags: PropertyTags;
}

/** The properties that a PROPFIND selects, worked out once per request body. */
export class PropertySelection {
  /** Data that must be loaded before the selected live properties can be shown. */
  readonly needs: ReadonlySet<PropertyNeed>;
  readonly needsDead: boolean;
  /** Whether the request names `oc:checksums`, so that they are worth computing. */
  readonly namesChecksums: boolean;
  readonly #kind: PropfindRequest['kind'];
  readonly #live: readonly SelectedProperty[];
  readonly #dead: readonly PropertyName[];
  /** Whether `allprop` includes the dead property. */
  readonly #includesDead: (property: DeadProperty) => boolean;
  readonly #missing: readonly PropertyName[];
  readonly #minimal: boolean;

  constructor(request: PropfindRequest, { client, minimal }: SelectionOptions) {
    const names = request.kind === 'propname' ? [] : request.names;
    const isShown = (property: LiveProperty) => property.needs !== 'quota' || client.reportsQuota;
    const named = names.map(liveProperty).filter((property) => property !== undefined);
    const unnamed = LIVE_PROPERTIES.filter((property) => isSelectedUnnamed(property, request.kind, client));
    this.#kind = request.kind;
    this.#minimal = minimal;
    this.#live = [...new Set([...unnamed, ...named])]
      .filter(isShown)
      .map((property) => ({ property, tags: propertyTags(property) }));
    this.#missing = named.filter((property) => !isShown(property));
    this.#dead = names.filter((name) => !liveProperty(name));
    this.#includesDead = client.allprop === 'lean' ? isMicrosofts : () => true;
    this.namesChecksums = names.some(isChecksums);
    this.needs = new Set(this.#live.flatMap(({ property }) => property.needs ?? []));
    this.needsDead = request.kind !== 'prop' || this.#dead.length > 0 || this.needs.has('dead');
  }

  /** Renders the `propstat`s of one resource: existing properties first, then missing and unavailable ones. */
  propstats(entry: Entry, dead: readonly DeadProperty[], state: LiveState): string {
    if (this.#kind === 'propname') return this.#propnames(entry, dead, state);
    let found = '';
    let missing = this.#missing.map((name) => emptyProperty(name)).join('');
    let unavailable = '';
    for (const { property, tags } of this.#live) {
      const value = property.value(entry, state, dead);
      if (typeof value === 'string') found += value === '' ? tags.empty : tags.open + value + tags.close;
      else if (value) unavailable += propstatXml(value.status, tags.empty, value.reason);
      else if (this.#isNamed(property)) missing += tags.empty;
    }
    for (const name of this.#dead) {
      const property = dead.find((one) => isSameProperty(one, name));
      if (property) found += property.xml;
      else missing += emptyProperty(name);
    }
    found += this.#unnamedDead(dead);
    return this.#join(found, missing, unavailable);
  }

  #join(found: string, missing: string, unavailable: string): string {
    const showsMissing = missing !== '' && !this.#minimal;
    const ok = found !== '' || !(showsMissing || unavailable) ? propstatXml(200, found) : '';
    return ok + (showsMissing ? propstatXml(404, missing) : '') + unavailable;
  }

  /** An `allprop` names no live property but those that it never includes by itself; only named ones can be missing. */
  #isNamed(property: LiveProperty): boolean {
    return this.#kind === 'prop' || property.allprop === 'never';
  }

  #unnamedDead(dead: readonly DeadProperty[]): string {
    if (this.#kind !== 'allprop') return '';
    const named = new Set(this.#dead.map(propertyKey));
    return dead
      .filter(
        (property) =>
          this.#includesDead(property) && !liveProperty(property) && !named.has(propertyKey(property)),
      )
      .map((property) => property.xml)
      .join('');
  }

  #propnames(entry: Entry, dead: readonly DeadProperty[], state: LiveState): string {
    const live = this.#live.filter(({ property }) => {
      const value = property.value(entry, state, dead);
      return value !== undefined && !(value instanceof UnavailableProperty);
    });
    const stored = dead.filter((property) => !liveProperty(property));
    return propstatXml(200, live.map(({ tags }) => tags.empty).join('') + stored.map(emptyProperty).join(''));
  }
}

/** Whether a PROPFIND of this kind selects the property although it does not name it. */
function isSelectedUnnamed(
  property: LiveProperty,
  kind: PropfindRequest['kind'],
  client: SelectionOptions['client'],
): boolean {
  if (kind === 'prop' || property.hidden) return false;
  if (kind === 'propname') return true;
  return property.allprop === 'lean' || (property.allprop === 'full' && client.allprop === 'full');
}

function isMicrosofts(property: DeadProperty): boolean {
  return property.namespace === MICROSOFT_NAMESPACE;
}
