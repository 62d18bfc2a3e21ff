import { XML_NAMESPACE, type XmlAttribute, type XmlElement } from './xml-element.ts';

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
  const around = new Map([['', '']]);
  return writeElement(element, element.scope.bindings(), { around, wanted: prefixesOf(element) }, language);
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

/** What an element is written into. */
interface Surroundings {
  /** What is declared around it, by prefix. */
  readonly around: ReadonlyMap<string, string>;
  /** The prefixes that are of use in the whole. */
  readonly wanted: ReadonlySet<string>;
}

/** `bindings` are those that may still have to be declared. */
function writeElement(
  element: XmlElement,
  bindings: ReadonlyMap<string, string>,
  { around, wanted }: Surroundings,
  language?: string,
): string {
  const tag = qualified(element);
  const declared = [...bindings].filter(
    ([prefix, namespace]) => wanted.has(prefix) && around.get(prefix) !== namespace,
  );
  const inner = declared.length === 0 ? around : new Map([...around, ...declared]);
  let start = `<${tag}`;
  for (const [prefix, namespace] of declared)
    start += ` xmlns${prefix && `:${prefix}`}="${escapeAttribute(namespace)}"`;
  for (const attribute of element.attributes)
    start += ` ${qualified(attribute)}="${escapeAttribute(attribute.value)}"`;
  if (language !== undefined && languageOf(element) === undefined)
    start += ` xml:lang="${escapeAttribute(language)}"`;
  if (element.content.length === 0) return `${start}/>`;
  const content = element.content.map((node) =>
    typeof node === 'string'
      ? escapeText(node)
      : writeElement(node, declaredBy(node, element), { around: inner, wanted }),
  );
  return `${start}>${content.join('')}</${tag}>`;
}

const NONE: ReadonlyMap<string, string> = new Map();

function declaredBy(child: XmlElement, parent: XmlElement): ReadonlyMap<string, string> {
  return child.scope === parent.scope ? NONE : child.scope.own;
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

/** A prefix before its colon; `mailto:` does not mention a prefix `o`. Looking behind keeps a long word from being tried at each of its characters. */
const MENTION = /(?<![\w.\-\u0080-\uffff])([\w.\-\u0080-\uffff]+):/g;

function addMentioned(text: string, element: XmlElement, found: Set<string>): void {
  if (!text.includes(':')) return;
  for (const [, prefix = ''] of text.matchAll(MENTION)) if (element.scope.has(prefix)) found.add(prefix);
}
