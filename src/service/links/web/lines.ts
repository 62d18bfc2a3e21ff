import { type Html, html } from '../../../util/html.ts';

/** Maximum length of a preview's markup, in characters. Such a preview can be kept, so that it is rendered only once. */
export const MARKUP_LENGTH_MAX = 2_000_000;

/** Returns text in numbered lines. Each line is a block, which is copied with its line break and without its number. */
export function plainLines(text: string): Html {
  return numberedLines(text.split('\n').map((line) => html`${line}`));
}

/** Adds numbers to lines of complete markup. */
export function numberedLines(lines: readonly Html[]): Html {
  return html`<pre class="code">${lines.map((line) => html`<span class="line">${line}</span>`)}</pre>`;
}
