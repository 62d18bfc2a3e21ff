import { type Html, html } from '../../../util/html.ts';

/** Text in numbered lines. Each is a block, which is copied with its line's end and without its number. */
export function plainLines(text: string): Html {
  return numberedLines(text.split('\n').map((line) => html`${line}`));
}

/** Lines of markup, each complete in itself, with numbers. */
export function numberedLines(lines: readonly Html[]): Html {
  return html`<pre class="code">${lines.map((line) => html`<span class="line">${line}</span>`)}</pre>`;
}
