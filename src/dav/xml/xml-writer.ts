import { XML_NAMESPACE, type XmlAttribute, type XmlElement } from './xml-element.ts';

/** Characters that XML 1.0 cannot contain, even escaped. File names can contain them. */
const UNWRITABLE = /[^\P{Cc}\t\n\r\x7f-\x9f]|[\p{Cs}\ufffe\uffff]/gu;
const SPECIAL = /[&<>\r]/g;
const SPECIAL_IN_ATTRIBUTE = /[&<>"\t\n\r]/g;

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Text that needs no escaping, the common case. */
const PLAIN = /^[\x20-\x25\x27-\x3b=\x3f-\ud7ff]*$/;

/** Escapes `text` for the content of an element. Characters that XML cannot contain become U+FFFD. */
export function escapeText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNWRITABLE, '\ufffd').replace(SPECIAL, escapeCharacter);
}

/** Escapes `text` for an attribute value in double quotes. */
export function escapeAttribute(text: string): string {
  return text.replace(UNWRITABLE, '\ufffd').replace(SPECIAL_IN_ATTRIBUTE, escapeCharacter);
}

/**
 * Renders `element` as self-contained XML: it declares every prefix that it or its values use, keeps the prefixes that
 * its author chose (RFC 4918 §4.3), and carries the inherited `xml:lang`, `language`.
 */
export function standaloneXml(element: XmlElement, language?: string): string {
  const around = new Map([['', '']]);
  return writeElement(element, element.scope.bindings(), { around, wanted: prefixesOf(element) }, language);
}

/** Renders the content of `element` as self-contained XML. */
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

/** The context that an element is rendered in. */
interface Surroundings {
  /** The namespaces declared around it, by prefix. */
  readonly around: ReadonlyMap<string, string>;
  /** The prefixes that the whole document uses. */
  readonly wanted: ReadonlySet<string>;
}

/** Renders `element`. `bindings` are those that may still have to be declared. */
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

/** Returns the prefixes of names, and those that values such as `xsi:type="xs:string"` may refer to. */
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

/** A prefix before a colon. The lookbehind keeps `mailto:` from matching a prefix `o`, and long words from quadratic time. */
const MENTION = /(?<![\w.\-\u0080-\uffff])([\w.\-\u0080-\uffff]+):/g;

function addMentioned(text: string, element: XmlElement, found: Set<string>): void {
  if (!text.includes(':')) return;
  for (const [, prefix = ''] of text.matchAll(MENTION)) if (element.scope.has(prefix)) found.add(prefix);
}
