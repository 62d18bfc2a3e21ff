import { DAV_NAMESPACE } from '../xml/element.ts';
import { escapeAttribute } from '../xml/write.ts';

export interface PropertyName {
  readonly namespace: string;
  readonly name: string;
}

/** davgate's own properties. The name is an identifier; nothing needs to answer there. */
export const DAVGATE_NAMESPACE = 'https://davgate.dev/ns';
/** ownCloud's, which rclone and sync clients ask for. */
export const OWNCLOUD_NAMESPACE = 'http://owncloud.org/ns';
/** Explorer's. */
export const MICROSOFT_NAMESPACE = 'urn:schemas-microsoft-com:';

/** Equal for equal names and no others: a space stands in no XML name. */
export function propertyKey({ namespace, name }: PropertyName): string {
  return `${name} ${namespace}`;
}

/** A property's element, in a document that binds `D` to `DAV:` and has no default namespace. */
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

/** The property's element with nothing in it. */
export function emptyProperty(property: PropertyName): string {
  return propertyTags(property).empty;
}
