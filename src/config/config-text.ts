import type { Document, LineCounter, Node } from 'yaml';

/** A place in a configuration file, like `line 12, column 3`. */
export type Place = string;

/** A value of a configuration file. */
export type ConfigNode =
  | {
      readonly kind: 'scalar';
      readonly place: Place;
      readonly value: string | number | boolean | null;
    }
  | { readonly kind: 'list'; readonly place: Place; readonly items: readonly ConfigNode[] }
  | { readonly kind: 'object'; readonly place: Place; readonly members: readonly ConfigMember[] };

/** A key of an object, and its value. */
export interface ConfigMember {
  readonly key: string;
  readonly place: Place;
  readonly node: ConfigNode;
}

export interface ConfigText {
  /** `undefined` for a text without a value. */
  readonly root: ConfigNode | undefined;
  /** Faults of the syntax, without any text of the file, which may be a secret. */
  readonly faults: readonly { readonly place: Place; readonly reason: string }[];
}

/** Parses YAML, or JSON with comments and trailing commas. */
export async function parseConfigText(text: string): Promise<ConfigText> {
  // Loaded only for a configuration file, because it takes as long as a tenth of a start.
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  const document = yaml.parseDocument(withoutJsonComments(text), {
    lineCounter: lines,
    prettyErrors: false,
    // `ConfigMember` keeps both of two equal keys, so that a message can name them.
    uniqueKeys: false,
  });
  const faults = [...document.errors, ...document.warnings].map(({ pos, message }) => ({
    place: placeAt(lines, pos[0]),
    reason: reasonIn(message),
  }));
  const reader = new NodeReader(document, lines, yaml);
  const root = document.contents === null ? undefined : reader.read(document.contents);
  return { root, faults: [...faults, ...reader.faults] };
}

/** Converts the nodes of the YAML library, and follows aliases. */
class NodeReader {
  readonly faults: { place: Place; reason: string }[] = [];
  /** Anchors around the current node: an alias to one of them would never end. */
  readonly #open = new Set<Node>();

  constructor(
    private readonly document: Document,
    private readonly lines: LineCounter,
    private readonly yaml: typeof import('yaml'),
  ) {}

  read(node: Node): ConfigNode {
    const { isAlias, isMap, isSeq, isScalar } = this.yaml;
    const place = placeAt(this.lines, node.range?.[0] ?? 0);
    if (isAlias(node)) return this.#aliased(node.resolve(this.document), place);
    if (isScalar(node)) return { kind: 'scalar', place, value: scalarOf(node.value) };
    this.#open.add(node);
    try {
      if (isSeq<Node>(node)) return { kind: 'list', place, items: node.items.map((item) => this.read(item)) };
      if (isMap<Node, Node | null>(node))
        return {
          kind: 'object',
          place,
          members: node.items.map(({ key, value }) => this.#member(key, value)),
        };
    } finally {
      this.#open.delete(node);
    }
    throw new TypeError('a node of an unknown kind');
  }

  #member(keyNode: Node, valueNode: Node | null): ConfigMember {
    const keyRead = this.read(keyNode);
    const { place } = keyRead;
    const node = valueNode ? this.read(valueNode) : ({ kind: 'scalar', place, value: null } as const);
    return { key: keyRead.kind === 'scalar' ? String(keyRead.value) : '', place, node };
  }

  #aliased(target: Node | undefined, place: Place): ConfigNode {
    if (target && !this.#open.has(target)) return this.read(target);
    this.faults.push({ place, reason: 'this alias names no anchor before it' });
    return { kind: 'scalar', place, value: null };
  }
}

function scalarOf(value: unknown): string | number | boolean | null {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return value === null || value === undefined ? null : String(value);
}

function placeAt(lines: LineCounter, offset: number): Place {
  const { line, col } = lines.linePos(offset);
  return `line ${line}, column ${col}`;
}

/** Removes quoted text of the file from the library's message. */
function reasonIn(message: string): string {
  const [reason = ''] = message.split(/: | [\\%]/);
  return reason.charAt(0).toLowerCase() + reason.slice(1);
}

/** Replaces the comments of JSON by spaces, which keeps all places. YAML has other comments and is left as it is. */
function withoutJsonComments(text: string): string {
  if (!/^\uFEFF?\s*(\{|\/[/*])/.test(text)) return text;
  const stringOrComment = /"(?:[^"\\\n]|\\.)*"|(?<![^\s{}[\],"])(?:\/\/[^\n]*|\/\*[\s\S]*?\*\/)/g;
  return text.replace(stringOrComment, (part) =>
    part.startsWith('/') ? part.replace(/[^\r\n]/g, ' ') : part,
  );
}
