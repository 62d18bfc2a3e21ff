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
