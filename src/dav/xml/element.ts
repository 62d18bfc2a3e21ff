export interface XmlAttribute {
  readonly namespace: string;
  readonly name: string;
  readonly prefix: string;
  readonly value: string;
}

/** An element as it was sent, its names resolved; comments and processing instructions are left out. */
export interface XmlElement {
  readonly namespace: string;
  readonly name: string;
  /** As it was written; `''` for none. */
  readonly prefix: string;
  /** All prefixes that are bound here, the element's own declarations included; `''` is the default. */
  readonly scope: ReadonlyMap<string, string>;
  /** Without namespace declarations. */
  readonly attributes: readonly XmlAttribute[];
  readonly content: readonly (XmlElement | string)[];
}

export const DAV_NAMESPACE = 'DAV:';
export const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace';

/** Whether `element` is called `name` in the namespace `DAV:`. */
export function isDav(element: XmlElement, name: string): boolean {
  return element.namespace === DAV_NAMESPACE && element.name === name;
}

export function childrenOf(element: XmlElement): XmlElement[] {
  return element.content.filter((node) => typeof node !== 'string');
}

/** The first child called `name` in the namespace `DAV:`. */
export function davChild(element: XmlElement, name: string): XmlElement | undefined {
  return childrenOf(element).find((child) => isDav(child, name));
}

/** All text at and below `element`, in document order. */
export function textOf(element: XmlElement): string {
  return element.content.map((node) => (typeof node === 'string' ? node : textOf(node))).join('');
}
