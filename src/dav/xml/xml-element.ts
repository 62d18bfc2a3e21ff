export interface XmlAttribute {
  readonly namespace: string;
  readonly name: string;
  readonly prefix: string;
  readonly value: string;
}

/** The namespace prefixes that are bound at an element: its own declarations, and a way to those around it. */
export class NamespaceScope {
  /** How many prefixes are bound here. */
  readonly size: number;

  /** `own`: by prefix; `''` is the default. */
  constructor(
    readonly own: ReadonlyMap<string, string>,
    readonly outer?: NamespaceScope,
  ) {
    const added = outer ? [...own.keys()].filter((prefix) => !outer.has(prefix)) : [...own.keys()];
    this.size = (outer?.size ?? 0) + added.length;
  }

  /** The namespace that `prefix` stands for; `undefined` where it is not bound. */
  get(prefix: string): string | undefined {
    return this.own.get(prefix) ?? this.outer?.get(prefix);
  }

  has(prefix: string): boolean {
    return this.get(prefix) !== undefined;
  }

  /** All that is bound here, the outermost declarations first. */
  bindings(): ReadonlyMap<string, string> {
    return new Map([...(this.outer?.bindings() ?? []), ...this.own]);
  }
}

/** An element as it was sent, its names resolved; comments and processing instructions are left out. */
export interface XmlElement {
  readonly namespace: string;
  readonly name: string;
  /** As it was written; `''` for none. */
  readonly prefix: string;
  /** The same object as the parent's, unless the element declares something. */
  readonly scope: NamespaceScope;
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
