/** Markup that is safe to send: made by `html`, which escapes all that it is given. */
export interface Html {
  readonly markup: string;
}

/**
 * A template whose values are text, and are escaped for elements and quoted attributes alike. Markup goes
 * in only as what `html` made itself; lists are joined.
 */
export function html(parts: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  return { markup: parts.map((part, index) => part + markupOf(values[index])).join('') };
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
