import type { Entry } from '../../drive/files.ts';
import type { DeadProperty } from '../../state/properties.ts';
import { propstatXml } from '../answers/multistatus.ts';
import type { Client } from '../clients.ts';
import { isChecksums } from './checksums.ts';
import { type Facts, LIVE_PROPERTIES, type LiveProperty, liveProperty, type Need, Withheld } from './live.ts';
import {
  emptyProperty,
  MICROSOFT_NAMESPACE,
  type PropertyName,
  type PropertyTags,
  propertyKey,
  propertyTags,
} from './names.ts';
import type { PropertyRequest } from './request.ts';

/** How the asker wants to be answered. */
export interface Taste {
  readonly client: Pick<Client, 'allprop' | 'reportsQuota'>;
  /** Leave out what is missing (`Prefer: return=minimal`, RFC 8144 §2.1; Office's `Brief: t`). */
  readonly minimal: boolean;
}

interface Shown {
  readonly property: LiveProperty;
  readonly tags: PropertyTags;
}

/** One kind of PROPFIND, worked out once: which properties a row shows and what must be known for that. */
export class PropertySet {
  readonly needsDead: boolean;
  readonly #kind: PropertyRequest['kind'];
  readonly #live: readonly Shown[];
  readonly #dead: readonly PropertyName[];
  readonly #deadOfAll: (property: DeadProperty) => boolean;
  readonly #missing: readonly PropertyName[];
  readonly #minimal: boolean;

  constructor(request: PropertyRequest, taste: Taste) {
    const names = request.kind === 'propname' ? [] : request.names;
    const tellable = (property: LiveProperty) => property.need !== 'space' || taste.client.reportsQuota;
    const named = names.map(liveProperty).filter((property) => property !== undefined);
    const unasked = LIVE_PROPERTIES.filter((property) => isUnasked(property, request.kind, taste));
    this.#kind = request.kind;
    this.#minimal = taste.minimal;
    this.#live = [...new Set([...unasked, ...named])]
      .filter(tellable)
      .map((property) => ({ property, tags: propertyTags(property) }));
    this.#missing = named.filter((property) => !tellable(property));
    this.#dead = names.filter((name) => !liveProperty(name));
    this.#deadOfAll = taste.client.allprop === 'lean' ? isMicrosofts : () => true;
    this.needsDead = request.kind !== 'prop' || this.#dead.length > 0 || this.needs('dead');
  }

  needs(what: Need): boolean {
    return this.#live.some(({ property }) => property.need === what);
  }

  /** The `propstat`s of one resource: what it has first, then, unless the answer is to be brief, what it has not. */
  propstats(entry: Entry, dead: readonly DeadProperty[], facts: Facts): string {
    if (this.#kind === 'propname') return this.#names(entry, dead, facts);
    let found = '';
    let missing = this.#missing.map((name) => emptyProperty(name)).join('');
    let withheld = '';
    for (const { property, tags } of this.#live) {
      const value = property.value(entry, facts, dead);
      if (typeof value === 'string') found += value === '' ? tags.empty : tags.open + value + tags.close;
      else if (value) withheld += propstatXml(value.status, tags.empty, value.reason);
      else if (this.#isNamed(property)) missing += tags.empty;
    }
    for (const name of this.#dead) {
      const property = dead.find((one) => one.name === name.name && one.namespace === name.namespace);
      if (property) found += property.xml;
      else missing += emptyProperty(name);
    }
    found += this.#remainingDead(dead);
    return this.#answer(found, missing, withheld);
  }

  #answer(found: string, missing: string, withheld: string): string {
    const showsMissing = missing !== '' && !this.#minimal;
    const ok = found !== '' || !(showsMissing || withheld) ? propstatXml(200, found) : '';
    return ok + (showsMissing ? propstatXml(404, missing) : '') + withheld;
  }

  /** Properties of `allprop` that a resource has not are not missing: nobody named them. */
  #isNamed(property: LiveProperty): boolean {
    return this.#kind === 'prop' || property.allprop === 'never';
  }

  #remainingDead(dead: readonly DeadProperty[]): string {
    if (this.#kind !== 'allprop') return '';
    const named = new Set(this.#dead.map(propertyKey));
    return dead
      .filter(
        (property) =>
          this.#deadOfAll(property) && !isChecksums(property) && !named.has(propertyKey(property)),
      )
      .map((property) => property.xml)
      .join('');
  }

  #names(entry: Entry, dead: readonly DeadProperty[], facts: Facts): string {
    const live = this.#live.filter(({ property }) => {
      const value = property.value(entry, facts, dead);
      return value !== undefined && !(value instanceof Withheld);
    });
    const stored = dead.filter((property) => !isChecksums(property));
    return propstatXml(200, live.map(({ tags }) => tags.empty).join('') + stored.map(emptyProperty).join(''));
  }
}

function isUnasked(property: LiveProperty, kind: PropertyRequest['kind'], taste: Taste): boolean {
  if (kind === 'prop' || property.hidden) return false;
  if (kind === 'propname') return true;
  return property.allprop === 'lean' || (property.allprop === 'full' && taste.client.allprop === 'full');
}

function isMicrosofts(property: DeadProperty): boolean {
  return property.namespace === MICROSOFT_NAMESPACE;
}
