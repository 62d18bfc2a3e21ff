export interface XmlAttribute {
  readonly namespace: string;
  readonly name: string;
  readonly prefix: string;
  readonly value: string;
}

/** The namespace prefixes in scope at an element: its own declarations, and a link to those around it. */
export class NamespaceScope {
  /** Number of prefixes in scope. */
  readonly size: number;

  /** `own` maps prefixes to namespaces; the prefix of the default namespace is `''`. */
  constructor(
    readonly own: ReadonlyMap<string, string>,
    readonly outer?: NamespaceScope,
  ) {
    const added = outer ? [...own.keys()].filter((prefix) => !outer.has(prefix)) : [...own.keys()];
    this.size = (outer?.size ?? 0) + added.length;
  }

  /** Returns the namespace of `prefix`; `undefined` if it is not bound. */
  get(prefix: string): string | undefined {
    return this.own.get(prefix) ?? this.outer?.get(prefix);
  }

  has(prefix: string): boolean {
    return this.get(prefix) !== undefined;
  }

  /** Returns all bindings in scope, the outermost first. */
  bindings(): ReadonlyMap<string, string> {
    return new Map([...(this.outer?.bindings() ?? []), ...this.own]);
  }
}

/** An element as it was sent, with resolved names and without comments and processing instructions. */
export interface XmlElement {
  readonly namespace: string;
  readonly name: string;
  /** Prefix in the document; `''` for none. */
  readonly prefix: string;
  /** Namespaces in scope: the parent's object, unless the element declares a namespace. */
  readonly scope: NamespaceScope;
  /** Excludes namespace declarations. */
  readonly attributes: readonly XmlAttribute[];
  readonly content: readonly (XmlElement | string)[];
}

export const DAV_NAMESPACE = 'DAV:';
export const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace';

/** Whether `element` has the name `name` in the namespace `DAV:`. */
export function isDav(element: XmlElement, name: string): boolean {
  return element.namespace === DAV_NAMESPACE && element.name === name;
}

export function childrenOf(element: XmlElement): XmlElement[] {
  return element.content.filter((node) => typeof node !== 'string');
}

/** Returns the first child with the name `name` in the namespace `DAV:`. */
export function davChild(element: XmlElement, name: string): XmlElement | undefined {
  return childrenOf(element).find((child) => isDav(child, name));
}

/** Returns all text in and below `element`, in document order. */
export function textOf(element: XmlElement): string {
  return element.content.map((node) => (typeof node === 'string' ? node : textOf(node))).join('');
}
