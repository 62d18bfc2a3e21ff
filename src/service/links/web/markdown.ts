import MarkdownIt from 'markdown-it';
import { type Html, html } from '../../../util/html.ts';
import { withinTime } from '../../../util/within-time.ts';
import { highlighted, languageOf } from './code.ts';

/** Links that a document may have: no scripts, and no files of the document's folder, which are not shared. */
const LINK = /^(https?:\/\/|mailto:)/i;
/** Images embedded in the document; images of other sites would tell them who reads it. */
const OWN_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/i;

const LINK_RELATION = 'noopener noreferrer nofollow';

const renderer = rendererOf();

/** Maximum time for rendering, in ms; enough for any document that a page shows, even on a busy machine. */
const RENDER_MAX_MS = 4_000;

/**
 * Renders a Markdown document: HTML in it stays text, and only links to the web become links. Returns `undefined` if it
 * would take longer than `limitMs`.
 */
export function markdown(text: string, limitMs = RENDER_MAX_MS): Html | undefined {
  const markup = withinTime(() => renderer.render(text), limitMs);
  return markup === undefined ? undefined : { markup: `<article class="markdown">${markup}</article>` };
}

function rendererOf(): ReturnType<typeof MarkdownIt> {
  const made = MarkdownIt({ html: false, linkify: true, highlight: highlightedBlock });
  made.validateLink = (url) => LINK.test(url) || OWN_IMAGE.test(url);
  const { rules } = made.renderer;
  rules['link_open'] = (tokens, index, options, _, self) => {
    tokens[index]?.attrSet('rel', LINK_RELATION);
    tokens[index]?.attrSet('target', '_blank');
    return self.renderToken(tokens, index, options);
  };
  const image = rules['image'];
  rules['image'] = (tokens, index, options, environment, self) => {
    const token = tokens[index];
    const address = String(token?.attrGet('src') ?? '');
    if (image && OWN_IMAGE.test(address)) return image(tokens, index, options, environment, self);
    return html`<a href="${address}" rel="${LINK_RELATION}" target="_blank">${token?.content || address}</a>`
      .markup;
  };
  return made;
}

/** Returns the highlighted block; markdown-it escapes the block itself when this returns an empty text. */
function highlightedBlock(text: string, language: string): string {
  const known = languageOf(`.${language}`);
  return (known === undefined ? undefined : highlighted(text, known)?.markup) ?? '';
}
