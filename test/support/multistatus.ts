import { childrenOf, davChild, isDav, textOf, type XmlElement } from '../../src/dav/xml/xml-element.ts';
import { XmlReader } from '../../src/dav/xml/xml-reader.ts';

interface ShownProperty {
  readonly status: string;
  readonly text: string;
  readonly element: XmlElement;
  readonly reason: string | undefined;
}

export interface Row {
  readonly href: string;
  /** Properties by `{namespace}name`. */
  readonly properties: ReadonlyMap<string, ShownProperty>;
  /** Status lines of the propstats, in order. */
  readonly statuses: readonly string[];
}

const SIZE_BYTES_MAX = 64 * 1024 * 1024;

/** Parses a multistatus. Throws if it is malformed. */
export async function parseMultistatus(text: string): Promise<readonly Row[]> {
  const root = await new XmlReader().read(Buffer.from(text), { sizeBytes: SIZE_BYTES_MAX, nodes: 1_000_000 });
  if (!root || !isDav(root, 'multistatus')) throw new Error(`no multistatus: ${text.slice(0, 200)}`);
  return childrenOf(root).map(rowOf);
}

function rowOf(response: XmlElement): Row {
  const propstats = childrenOf(response).filter((child) => isDav(child, 'propstat'));
  const properties = new Map<string, ShownProperty>();
  for (const propstat of propstats) {
    const status = textOf(present(propstat, 'status'));
    const description = davChild(propstat, 'responsedescription');
    for (const element of childrenOf(present(propstat, 'prop')))
      properties.set(`{${element.namespace}}${element.name}`, {
        status,
        text: textOf(element),
        element,
        reason: description && textOf(description),
      });
  }
  return {
    href: textOf(present(response, 'href')),
    properties,
    statuses: propstats.map((propstat) => textOf(present(propstat, 'status'))),
  };
}

function present(element: XmlElement, name: string): XmlElement {
  const child = davChild(element, name);
  if (!child) throw new Error(`${element.name} has no ${name}`);
  return child;
}
