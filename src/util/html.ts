/** Markup that is safe to send. Only `html` makes it, which escapes its values. */
export interface Html {
  readonly markup: string;
}

/**
 * Template tag that escapes its values, for elements and for quoted attributes. Inserts `Markup` unchanged; joins lists.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return { markup: parts.map((part, index) => part + markupOf(values[index])).join('') };
}

export interface HtmlDocument {
  /** English by default. */
  readonly language?: string;
  readonly title: string;
  /** The only style sheet. A Content-Security-Policy may have the hash of exactly this text, so it is not escaped. */
  readonly style: string;
  /** Further elements of the head. */
  readonly head?: Html;
  /** The `body` element. */
  readonly body: Html;
}

/** Returns a whole page, which search engines do not index. */
export function htmlDocument({ language = 'en', title, style, head, body }: HtmlDocument): string {
  return html`<!doctype html>
<html lang="${language}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
${head}<title>${title}</title>
${{ markup: `<style>${style}</style>` }}
</head>
${body}
</html>
`.markup;
}

type HtmlValue = string | number | Html | undefined | readonly Html[];

function markupOf(value: HtmlValue): string {
  if (value === undefined) return '';
  if (typeof value === 'string') return escapeHtml(value);
  if (typeof value === 'number') return String(value);
  return 'markup' in value ? value.markup : value.map((one) => one.markup).join('');
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character);
}
