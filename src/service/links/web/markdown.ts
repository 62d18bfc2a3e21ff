import MarkdownIt from 'markdown-it';
import { type Html, html } from '../../../util/html.ts';
import { withinTime } from '../../../util/within-time.ts';
import { highlighted, languageOf } from './code.ts';

/** Where a link in a document may lead: not to what runs, and not to what only the document's own folder has. */
const LINK = /^(https?:\/\/|mailto:)/i;
/** Images that are in the document itself: those of other sites would tell these who reads it. */
const OWN_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/i;

const LINK_RELATION = 'noopener noreferrer nofollow';

const renderer = rendererOf();

/** Enough for any document that a page shows, even on a busy machine. */
const RENDER_MAX_MS = 4_000;

/**
 * A Markdown document for a page: markup in it stays text, and only links that lead to the web are links. `undefined` where
 * it would take longer than `limitMs`.
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

/** The empty answer leaves a block to be escaped as it is. */
function highlightedBlock(text: string, language: string): string {
  const known = languageOf(`.${language}`);
  return (known === undefined ? undefined : highlighted(text, known)?.markup) ?? '';
}
