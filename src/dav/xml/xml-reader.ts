import { setImmediate as otherWork } from 'node:timers/promises';
import { type SaxesAttributeNS, SaxesParser, type SaxesTagNS } from 'saxes';
import { DavError } from '../errors.ts';
import { NamespaceScope, type XmlAttribute, type XmlElement } from './xml-element.ts';
import { XmlTextDecoder } from './xml-encoding.ts';

export interface XmlLimits {
  /** Of the body; a larger one is refused as soon as it has passed this. */
  readonly sizeBytes: number;
  /** Elements and attributes together: bounds the tree's memory, about 200 bytes each. */
  readonly nodes: number;
}

/** No WebDAV client sends more. */
export const XML_LIMITS: XmlLimits = { sizeBytes: 1024 * 1024, nodes: 20_000 };
/** The parser's cost grows with the square of the depth: 50,000 nested tags would take half a minute. */
const DEPTH_MAX = 64;
/** In scope at one element; real ones have under ten. */
const PREFIXES_MAX = 64;

/** The five of XML itself. Without a prototype: `&constructor;` would otherwise be known. */
const ENTITIES: Record<string, string> = Object.assign(Object.create(null), {
  amp: '&',
  gt: '>',
  lt: '<',
  quot: '"',
  apos: "'",
});

/** A larger body is parsed while no other large one is, so that their trees do not pile up; in bytes. */
const SMALL_BYTES_MAX = 64 * 1024;
/** Bytes that are parsed at a time, between which other requests get their turn. */
const PIECE_BYTES = 64 * 1024;

/** Parses the bodies of all requests. */
export class XmlReader {
  readonly #parse: typeof parseXml;
  /** Resolves when the large bodies before the next one have been parsed. */
  #free: Promise<unknown> = Promise.resolve();

  constructor(parse = parseXml) {
    this.#parse = parse;
  }

  /**
   * The root element of a request body; `undefined` for an empty body. Names are resolved to their namespaces. Throws
   * `DavError` 400 for what is not well-formed or has a document type, 413 beyond `limits.sizeBytes`, 415 for an
   * encoding other than UTF-8 and UTF-16; the message says what was wrong.
   */
  async read(
    body: AsyncIterable<Uint8Array> | Uint8Array,
    limits: XmlLimits = XML_LIMITS,
  ): Promise<XmlElement | undefined> {
    // The whole body first: nobody waits for a client that sends slowly.
    const bytes = body instanceof Uint8Array ? body : await readXmlBytes(body, limits);
    if (bytes.length <= SMALL_BYTES_MAX) return this.#parse(bytes, limits);
    const parsed = this.#free.then(() => this.#parse(bytes, limits));
    this.#free = parsed.catch(() => {});
    return parsed;
  }
}

/** As `XmlReader.read`, of a body that is there. */
async function parseXml(bytes: Uint8Array, limits: XmlLimits): Promise<XmlElement | undefined> {
  if (bytes.length === 0) return undefined;
  const tree = new TreeBuilder(limits);
  const decoder = new XmlTextDecoder();
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    if (at > 0) await otherWork();
    tree.write(decoder.decode(bytes.subarray(at, at + PIECE_BYTES)));
  }
  tree.write(decoder.end());
  return tree.end(decoder);
}

/** A whole body, not parsed yet. Throws `DavError` 413. */
export async function readXmlBytes(
  body: AsyncIterable<Uint8Array>,
  limits: Pick<XmlLimits, 'sizeBytes'>,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of body) {
    sizeBytes += chunk.length;
    if (sizeBytes > limits.sizeBytes)
      throw new DavError(413, `the XML body is larger than ${limits.sizeBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

type Growing = XmlElement & { readonly content: (XmlElement | string)[] };

class TreeBuilder {
  readonly #parser = new SaxesParser({ xmlns: true, forceXMLVersion: true, defaultXMLVersion: '1.0' });
  readonly #open: Growing[] = [];
  #root: XmlElement | undefined;
  #declaredEncoding: string | undefined;
  #depth = 0;
  #nodes = 0;

  constructor(private readonly limits: XmlLimits) {
    const parser = this.#parser;
    parser.ENTITIES = ENTITIES;
    parser.on('xmldecl', ({ encoding }) => {
      this.#declaredEncoding = encoding;
    });
    parser.on('doctype', () => {
      throw new DavError(400, 'the XML has a document type declaration; send it without <!DOCTYPE …>');
    });
    parser.on('opentagstart', () => {
      this.#count();
      this.#depth += 1;
      if (this.#depth > DEPTH_MAX)
        throw new DavError(400, `the XML is nested deeper than ${DEPTH_MAX} elements`);
    });
    parser.on('attribute', () => this.#count());
    parser.on('opentag', (tag) => this.#opened(tag));
    parser.on('closetag', () => this.#closed());
    parser.on('text', (text) => this.#text(text));
    parser.on('cdata', (text) => this.#text(text));
  }

  write(text: string): void {
    if (text === '') return;
    refusing(() => this.#parser.write(text));
  }

  end(decoder: XmlTextDecoder): XmlElement | undefined {
    refusing(() => this.#parser.close());
    decoder.check(this.#declaredEncoding);
    return this.#root;
  }

  #count(): void {
    this.#nodes += 1;
    if (this.#nodes > this.limits.nodes)
      throw new DavError(400, `the XML has more than ${this.limits.nodes} elements and attributes`);
  }

  #opened(tag: SaxesTagNS): void {
    const parent = this.#open.at(-1);
    const element: Growing = {
      namespace: tag.uri,
      name: tag.local,
      prefix: tag.prefix,
      scope: scopeOf(tag, parent),
      attributes: Object.values(tag.attributes).filter(isOwnAttribute).map(attributeOf),
      content: [],
    };
    parent?.content.push(element);
    this.#open.push(element);
    this.#root ??= element;
  }

  #closed(): void {
    this.#open.pop();
    this.#depth -= 1;
  }

  #text(text: string): void {
    this.#open.at(-1)?.content.push(text);
  }
}

const NO_SCOPE = new NamespaceScope(new Map());

function scopeOf(tag: SaxesTagNS, parent: XmlElement | undefined): NamespaceScope {
  const own = Object.entries(tag.ns);
  const outer = parent?.scope ?? NO_SCOPE;
  if (own.length === 0) return outer;
  const scope = new NamespaceScope(new Map(own), outer);
  if (scope.size > PREFIXES_MAX)
    throw new DavError(400, `the XML binds more than ${PREFIXES_MAX} namespace prefixes`);
  return scope;
}

function isOwnAttribute(attribute: SaxesAttributeNS): boolean {
  return attribute.prefix !== 'xmlns' && attribute.name !== 'xmlns';
}

function attributeOf({ uri, local, prefix, value }: SaxesAttributeNS): XmlAttribute {
  return { namespace: uri, name: local, prefix, value };
}

/** The parser throws plain errors, which say where and what. */
function refusing(parse: () => void): void {
  try {
    parse();
  } catch (error) {
    if (error instanceof DavError || !(error instanceof Error)) throw error;
    throw new DavError(400, `the body is not well-formed XML: ${error.message}`);
  }
}
