import { DAV_NAMESPACE } from '../xml/xml-element.ts';
import { escapeAttribute } from '../xml/xml-writer.ts';

export interface PropertyName {
  readonly namespace: string;
  readonly name: string;
}

/** The namespace of davgate's own properties: an identifier, not the address of a page. */
export const DAVGATE_NAMESPACE = 'https://davgate.dev/ns';
/** ownCloud's namespace, which rclone and sync clients use. */
export const OWNCLOUD_NAMESPACE = 'http://owncloud.org/ns';
/** The namespace that Explorer and Office use. */
export const MICROSOFT_NAMESPACE = 'urn:schemas-microsoft-com:';

/** Returns a key for maps. A space separates the two parts, because no XML name contains one. */
export function propertyKey({ namespace, name }: PropertyName): string {
  return `${name} ${namespace}`;
}

export function isSameProperty(one: PropertyName, other: PropertyName): boolean {
  return one.name === other.name && one.namespace === other.namespace;
}

/** The tags of a property's element, for a document that binds `D` to `DAV:` and has no default namespace. */
export interface PropertyTags {
  readonly open: string;
  readonly close: string;
  readonly empty: string;
}

export function propertyTags({ namespace, name }: PropertyName): PropertyTags {
  const isDav = namespace === DAV_NAMESPACE;
  const tag = isDav ? `D:${name}` : name;
  const start = isDav || namespace === '' ? tag : `${tag} xmlns="${escapeAttribute(namespace)}"`;
  return { open: `<${start}>`, close: `</${tag}>`, empty: `<${start}/>` };
}

/** Renders the property's element without content. */
export function emptyProperty(property: PropertyName): string {
  return propertyTags(property).empty;
}
