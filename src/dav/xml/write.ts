import { XML_NAMESPACE, type XmlAttribute, type XmlElement } from './element.ts';

/** What XML 1.0 cannot hold, however it is escaped; names of files can. */
const UNWRITABLE = /[^\P{Cc}\t\n\r\x7f-\x9f]|[\p{Cs}\ufffe\uffff]/gu;
const SPECIAL = /[&<>\r]/g;
const SPECIAL_IN_ATTRIBUTE = /[&<>"\t\n\r]/g;

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** The common case, left as it is. */
const PLAIN = /^[\x20-\x25\x27-\x3b=\x3f-\ud7ff]*$/;

/** `text` as the content of an element; characters that XML cannot hold become U+FFFD. */
export function escapeText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNWRITABLE, '\ufffd').replace(SPECIAL, escapeCharacter);
}

/** `text` between double quotes. */
export function escapeAttribute(text: string): string {
  return text.replace(UNWRITABLE, '\ufffd').replace(SPECIAL_IN_ATTRIBUTE, escapeCharacter);
}

/**
 * `element` as XML that stands by itself: it declares every prefix that it or its values use, under the
 * prefixes that its writer chose (RFC 4918 §4.3), and has the `xml:lang` it inherited, `language`.
 */
export function standaloneXml(element: XmlElement, language?: string): string {
  return writeElement(element, new Map([['', '']]), prefixesOf(element), language);
}

/** The inside of `element` as XML that stands by itself. */
export function standaloneContent(element: XmlElement): string {
  return element.content
    .map((node) => (typeof node === 'string' ? escapeText(node) : standaloneXml(node)))
    .join('');
}

export function languageOf(element: XmlElement): string | undefined {
  return element.attributes.find(isLanguage)?.value;
}

function isLanguage(attribute: XmlAttribute): boolean {
  return attribute.namespace === XML_NAMESPACE && attribute.name === 'lang';
}

function escapeCharacter(character: string): string {
  return ESCAPES[character] ?? `&#${character.charCodeAt(0)};`;
}

/** `outer` is what is declared around it; `wanted`, the prefixes that are of use in the whole. */
function writeElement(
  element: XmlElement,
  outer: ReadonlyMap<string, string>,
  wanted: ReadonlySet<string>,
  language?: string,
): string {
  const tag = qualified(element);
  const inner = new Map(outer);
  let start = `<${tag}`;
  for (const [prefix, namespace] of element.scope) {
    if (outer.get(prefix) === namespace || !wanted.has(prefix)) continue;
    inner.set(prefix, namespace);
    start += ` xmlns${prefix && `:${prefix}`}="${escapeAttribute(namespace)}"`;
  }
  for (const attribute of element.attributes)
    start += ` ${qualified(attribute)}="${escapeAttribute(attribute.value)}"`;
  if (language !== undefined && languageOf(element) === undefined)
    start += ` xml:lang="${escapeAttribute(language)}"`;
  if (element.content.length === 0) return `${start}/>`;
  const content = element.content.map((node) =>
    typeof node === 'string' ? escapeText(node) : writeElement(node, inner, wanted),
  );
  return `${start}>${content.join('')}</${tag}>`;
}

function qualified({ prefix, name }: { readonly prefix: string; readonly name: string }): string {
  return prefix === '' ? name : `${prefix}:${name}`;
}

/** Prefixes of names, and those that may be meant by a value such as `xsi:type="xs:string"`. */
function prefixesOf(element: XmlElement, found: Set<string> = new Set()): Set<string> {
  found.add(element.prefix);
  for (const attribute of element.attributes) {
    found.add(attribute.prefix);
    addMentioned(attribute.value, element, found);
  }
  for (const node of element.content) {
    if (typeof node === 'string') addMentioned(node, element, found);
    else prefixesOf(node, found);
  }
  return found;
}

function addMentioned(text: string, element: XmlElement, found: Set<string>): void {
  for (const prefix of element.scope.keys())
    if (prefix !== '' && !found.has(prefix) && mentions(text, `${prefix}:`)) found.add(prefix);
}

/** `mailto:` does not mention a prefix `o`. */
function mentions(text: string, start: string): boolean {
  for (let at = text.indexOf(start); at >= 0; at = text.indexOf(start, at + 1))
    if (at === 0 || !/[\w.\-\u0080-\uffff]/.test(text.charAt(at - 1))) return true;
  return false;
}
