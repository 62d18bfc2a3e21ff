import { DAV_NAMESPACE } from './xml-element.ts';
import { escapeAttribute } from './xml-write.ts';

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

/** The property's element around `inner`, for a document that binds `D` to `DAV:` and has no default namespace. */
export function propertyXml(property: PropertyName, inner: string): string {
  const { tag, declaration } = written(property);
  return inner === '' ? `<${tag}${declaration}/>` : `<${tag}${declaration}>${inner}</${tag}>`;
}

function written({ namespace, name }: PropertyName): { readonly tag: string; readonly declaration: string } {
  if (namespace === DAV_NAMESPACE) return { tag: `D:${name}`, declaration: '' };
  return { tag: name, declaration: namespace === '' ? '' : ` xmlns="${escapeAttribute(namespace)}"` };
}
