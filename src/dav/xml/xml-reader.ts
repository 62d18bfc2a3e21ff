import { setImmediate as otherTasks } from 'node:timers/promises';
import { TextDecoder } from 'node:util';
import { type SaxesAttributeNS, SaxesParser, type SaxesTagNS } from 'saxes';
import { readBody } from '../../util/whole-body.ts';
import { DavError } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
import { NamespaceScope, type XmlAttribute, type XmlElement } from './xml-element.ts';

export interface XmlLimits {
  /** Maximum size of the body. A larger one is refused as soon as it exceeds this. */
  readonly sizeBytes: number;
  /** Maximum number of elements and attributes, which take about 200 bytes each. */
  readonly nodes: number;
}

/** Default limits, which no WebDAV client reaches. */
export const XML_LIMITS: XmlLimits = { sizeBytes: 1024 * 1024, nodes: 20_000 };
/** Maximum depth of elements. Parsing time grows with its square: 50,000 nested tags take half a minute. */
const DEPTH_MAX = 64;
/** Maximum number of prefixes in scope at an element; real documents have under ten. */
const PREFIXES_MAX = 64;
/** Maximum length of a namespace's name: a document has it once, and what davgate makes of it may have it in each element. */
const NAMESPACE_LENGTH_MAX = 1000;

/** The five predefined entities. No prototype, or `&constructor;` would be an entity too. */
const ENTITIES: Record<string, string> = Object.assign(Object.create(null), {
  amp: '&',
  gt: '>',
  lt: '<',
  quot: '"',
  apos: "'",
});

/** Maximum size of a body parsed at once, in bytes. Larger ones take turns, so that few of their trees exist. */
const SMALL_BYTES_MAX = 64 * 1024;
/** How much of a body is parsed before other requests get a turn, in bytes. */
const PIECE_BYTES = 64 * 1024;

/** The body of a request. */
type RequestBody = Pick<Exchange, 'body' | 'bodyHere'>;

/** Parses the bodies of all requests. */
export class XmlReader {
  readonly #parse: typeof parseXml;
  /** Resolves when all large bodies so far have been parsed. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parse = parseXml) {
    this.#parse = parse;
  }

  /**
   * Parses a request body and returns its root element; `undefined` for an empty body. Throws `DavError` 400 for
   * malformed XML and a document type, 413 above `limits.sizeBytes`, 415 for an encoding other than UTF-8 and UTF-16.
   */
  async read(
    body: RequestBody | Uint8Array,
    limits: XmlLimits = XML_LIMITS,
  ): Promise<XmlElement | undefined> {
    // Wait for the whole body first, so that a slow client delays nobody else's turn.
    const bytes = body instanceof Uint8Array ? body : await readXmlBytes(body, limits);
    if (bytes.length <= SMALL_BYTES_MAX) return this.#parse(bytes, limits);
    const parsed = this.#turn.then(() => this.#parse(bytes, limits));
    this.#turn = parsed.catch(() => {});
    return parsed;
  }
}

/** Parses a complete body. Throws like `XmlReader.read`. */
async function parseXml(bytes: Uint8Array, limits: XmlLimits): Promise<XmlElement | undefined> {
  if (bytes.length === 0) return undefined;
  const tree = new TreeBuilder(limits);
  const decoder = new XmlTextDecoder();
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
    if (at > 0) await otherTasks();
    tree.write(decoder.decode(bytes.subarray(at, at + PIECE_BYTES)));
  }
  tree.write(decoder.end());
  return tree.end(decoder);
}

/** Reads a body without parsing it. Throws `DavError` 413 above the limit. */
export async function readXmlBytes(body: RequestBody, limits: Pick<XmlLimits, 'sizeBytes'>): Promise<Buffer> {
  const whole = await body.bodyHere();
  const bytes = await readBody(whole ? [whole] : body.body(), limits.sizeBytes);
  if (!bytes) throw new DavError(413, `the XML body is larger than ${limits.sizeBytes} bytes, the maximum`);
  return bytes;
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
      throw new DavError(400, 'the XML contains a document type declaration; send it without <!DOCTYPE …>');
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
  if (own.some(([, namespace]) => namespace.length > NAMESPACE_LENGTH_MAX))
    throw new DavError(400, `the XML has a namespace of more than ${NAMESPACE_LENGTH_MAX} characters`);
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

/** Turns the parser's errors, which contain position and cause, into `DavError` 400. */
function refusing(parse: () => void): void {
  try {
    parse();
  } catch (error) {
    if (error instanceof DavError || !(error instanceof Error)) throw error;
    throw new DavError(400, `the body is not well-formed XML: ${error.message}`);
  }
}

type Encoding = 'utf-8' | 'utf-16le' | 'utf-16be';

/** The names that an XML declaration may use for the detected encoding. */
const DECLARABLE: Record<Encoding, RegExp> = {
  'utf-8': /^(utf-?8|us-ascii|ascii)$/i,
  'utf-16le': /^(utf-16(le)?|ucs-2)$/i,
  'utf-16be': /^(utf-16(be)?|ucs-2)$/i,
};

/** How many bytes are needed to detect a byte order mark, or `<` in UTF-16. */
const SNIFFED_BYTES = 2;

/** Decodes an XML document in UTF-8 or UTF-16, detected by its byte order mark or first character. */
class XmlTextDecoder {
  #start: Uint8Array = new Uint8Array(0);
  #encoding: Encoding = 'utf-8';
  #decoder: TextDecoder | undefined;

  /** Throws `DavError` 400 for bytes that are invalid in the document's encoding. */
  decode(chunk: Uint8Array): string {
    if (this.#decoder) return this.#run(chunk, true);
    const bytes = this.#start.length === 0 ? chunk : Buffer.concat([this.#start, chunk]);
    if (bytes.length < SNIFFED_BYTES) {
      this.#start = bytes;
      return '';
    }
    return this.#begin(bytes, true);
  }

  end(): string {
    return this.#decoder ? this.#run(new Uint8Array(0), false) : this.#begin(this.#start, false);
  }

  /** Throws `DavError` 415 when the document declares another encoding than the detected one. */
  check(declared: string | undefined): void {
    if (declared === undefined || DECLARABLE[this.#encoding].test(declared)) return;
    throw new DavError(
      415,
      `the XML declares the encoding ${declared}, which is not supported; send it in UTF-8`,
    );
  }

  #begin(bytes: Uint8Array, more: boolean): string {
    this.#encoding = encodingOf(bytes);
    this.#decoder = new TextDecoder(this.#encoding, { fatal: true });
    return this.#run(bytes, more);
  }

  #run(bytes: Uint8Array, more: boolean): string {
    try {
      return this.#decoder?.decode(bytes, { stream: more }) ?? '';
    } catch {
      throw new DavError(400, `the XML body is not valid ${this.#encoding.toUpperCase()}`);
    }
  }
}

function encodingOf([first, second]: Uint8Array): Encoding {
  if ((first === 0xff && second === 0xfe) || (first === 0x3c && second === 0)) return 'utf-16le';
  if ((first === 0xfe && second === 0xff) || (first === 0 && second === 0x3c)) return 'utf-16be';
  return 'utf-8';
}
