import MarkdownIt from 'markdown-it';
import type { Html } from '../../../util/html.ts';
import { limitLinks } from '../../../util/markdown.ts';
import { withinTime } from '../../../util/within-time.ts';
import { highlighted, languageOf } from './code.ts';

const renderer = rendererOf();

/** Maximum time for rendering, in ms; enough for any document that a page shows, even on a busy machine. */
const RENDER_MS_MAX = 4_000;

/**
 * Renders a Markdown document: HTML in it stays text, and `withRelativeLinks` completes its relative links. Returns
 * `undefined` if it would take longer than `limitMs`.
 */
export function markdown(text: string, limitMs = RENDER_MS_MAX): Html | undefined {
  const markup = withinTime(() => renderer.render(text), limitMs);
  return markup === undefined ? undefined : { markup: `<article class="markdown">${markup}</article>` };
}

function rendererOf(): ReturnType<typeof MarkdownIt> {
  const made = MarkdownIt({ html: false, linkify: true, highlight: highlightedBlock });
  limitLinks(made);
  return made;
}

/** Returns the highlighted block; markdown-it escapes the block itself when this returns an empty text. */
function highlightedBlock(text: string, language: string): string {
  const known = languageOf(`.${language}`);
  return (known === undefined ? undefined : highlighted(text, known)?.markup) ?? '';
}
