/**
 * Names as URLs write them: percent-encoded bytes, nearly always UTF-8 (RFC 3986 §2.5). A byte that is not valid UTF-8, as in
 * names from an old disk, is written in a name as rclone does: a quote and two hexadecimal digits. A name that looks like that
 * gets more quotes, so that the mapping is one to one.
 */

const QUOTE = '\u201b';

/** Bytes that are not valid UTF-8 are above 0x7f. Between decoding and quoting, each is one of these lone surrogates. */
const LONE = 0xdc00;

/** A lone byte, or digits that could be taken for one, with all quotes before it: each is looked at once. */
const IN_TEXT = /(?<!\u201b)(?:(\u201b*)([\udc80-\udcff])|(\u201b+)([89a-f][0-9a-f]))/giu;
const IN_NAME = /(?<!\u201b)(\u201b+)([89a-f][0-9a-f])/giu;

/** Returns the name in a segment of a URL's path. Throws `URIError` for a `%` without two hexadecimal digits. */
export function decodeName(segment: string): string {
  const text = decodedText(segment);
  if (text !== undefined && !text.includes(QUOTE)) return text;
  const before = new LoneBytes();
  return (text ?? textOf(bytesOf(segment))).replace(
    IN_TEXT,
    (match, ...[quotesOfByte, byte, quotesOfDigits, digits, at]: TextMatch) => {
      const isByte = byte !== undefined;
      const value = isByte ? byte.charCodeAt(0) - LONE : Number.parseInt(digits ?? '', 16);
      const count = (quotesOfByte ?? quotesOfDigits ?? '').length;
      const shift = before.areCompletedBy(value, at) ? 1 : 0;
      before.add(isByte ? value : undefined, { isAdjacent: count === 0, at, end: at + match.length });
      const quotes = QUOTE.repeat(2 * count + Number(isByte) - shift);
      return quotes + (isByte ? value.toString(16).toUpperCase() : digits);
    },
  );
}

type TextMatch = [string | undefined, string | undefined, string | undefined, string | undefined, number];

/** Returns a name as a segment of a URL's path, with all characters escaped that `encodeURIComponent` escapes. */
export function encodeName(name: string): string {
  if (!name.includes(QUOTE)) return encodeURIComponent(name);
  const before = new LoneBytes();
  const text = name.replace(IN_NAME, (match, quotes: string, digits: string, at: number) => {
    const value = Number.parseInt(digits, 16);
    const shift = before.areCompletedBy(value, at) ? 1 : 0;
    const doubled = quotes.length + shift;
    const isByte = doubled % 2 === 1;
    const count = doubled >> 1;
    before.add(isByte ? value : undefined, { isAdjacent: count === 0, at, end: at + match.length });
    return QUOTE.repeat(count) + (isByte ? String.fromCharCode(LONE + value) : digits);
  });
  return text
    .split(/([\udc80-\udcff])/u)
    .map((part, index) => (index % 2 === 1 ? escapeOf(part.charCodeAt(0) - LONE) : encodeURIComponent(part)))
    .join('');
}

/**
 * The lone bytes just before a place. Where the next one would make a character of them, it cannot be a lone byte itself: the
 * names that would say so stand for what else can follow, with one quote less, so that no name is left without a meaning.
 */
class LoneBytes {
  #bytes: number[] = [];
  #end = -1;

  areCompletedBy(value: number, at: number): boolean {
    if (at !== this.#end) return false;
    return this.#bytes.some((_, start) => isCharacter([...this.#bytes.slice(start), value]));
  }

  /** `value`: `undefined` for anything but a lone byte. `isAdjacent`: nothing lies between it and the bytes before. */
  add(
    value: number | undefined,
    { isAdjacent, at, end }: { readonly isAdjacent: boolean; readonly at: number; readonly end: number },
  ): void {
    const kept = isAdjacent && at === this.#end ? this.#bytes.slice(-2) : [];
    this.#bytes = value === undefined ? [] : [...kept, value];
    this.#end = end;
  }
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });

/** What the decoder writes for bytes that are no character. It is one itself, whose first byte is 0xef. */
const REPLACEMENT = '\ufffd';

function isCharacter(bytes: readonly number[]): boolean {
  return lengthOfCharacter(Uint8Array.from(bytes), 0) === bytes.length;
}

/** Returns how many bytes the character at `start` has in UTF-8; 0 if none begins there. */
function lengthOfCharacter(bytes: Uint8Array, start: number): number {
  const lead = bytes[start] ?? 0;
  const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (start + length > bytes.length) return 0;
  // Not `fatal`: a client can send tens of thousands of such bytes, and an error for each takes a while.
  const [character, other] = utf8.decode(bytes.subarray(start, start + length));
  const isOne = other === undefined && (character !== REPLACEMENT || lead === 0xef);
  return isOne ? length : 0;
}

function decodedText(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** Returns the bytes of a segment. Throws `URIError`. */
function bytesOf(segment: string): Uint8Array {
  const parts: readonly string[] = segment.match(/%[0-9a-f]{2}|[^%]+|%/gi) ?? [];
  if (parts.includes('%')) throw new URIError('a "%" without two hexadecimal digits');
  const encoder = new TextEncoder();
  return Uint8Array.from(
    parts.flatMap((part) =>
      part[0] === '%' ? Number.parseInt(part.slice(1), 16) : [...encoder.encode(part)],
    ),
  );
}

/** Decodes UTF-8, with a lone surrogate for each byte that is no part of it. */
function textOf(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; ) {
    const length = lengthOfCharacter(bytes, at);
    text +=
      length === 0
        ? String.fromCharCode(LONE + (bytes[at] ?? 0))
        : utf8.decode(bytes.subarray(at, at + length));
    at += Math.max(1, length);
  }
  return text;
}

function escapeOf(byte: number): string {
  return `%${byte.toString(16).toUpperCase()}`;
}
