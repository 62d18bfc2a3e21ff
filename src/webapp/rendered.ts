import highlighter from 'highlight.js/lib/common';
import MarkdownIt from 'markdown-it';

// Loaded with the first text that needs it, because the libraries are larger than the rest of the application.

/** Longer texts are shown as they are, in characters: they would stop the browser. */
const CHARACTERS_MAX = 256 * 1024;
/** A text with a longer line too: the highlighter's time grows with the square of a line. */
const LINE_CHARACTERS_MAX = 2000;

/** Links that a document may have: no scripts, and nothing of this drive. */
const LINK = /^(https?:\/\/|mailto:)/i;
/** Images in the document itself; images of other sites would tell them who reads it. */
const OWN_IMAGE = /^data:image\/(png|jpeg|gif|webp);base64,/i;

/** Markup of a text, in which everything that comes from the text is escaped. */
export interface Rendered {
  readonly kind: 'code' | 'markdown';
  readonly markup: string;
}

/** Renders a text by the ending of its name: a document in Markdown, or highlighted code in numbered lines. */
export function rendered(name: string, text: string): Rendered | undefined {
  if (text.length > CHARACTERS_MAX) return undefined;
  const ending = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  if (ending === 'md' || ending === 'markdown') return { kind: 'markdown', markup: documents().render(text) };
  const code = highlighted(text, ending);
  return code === undefined ? undefined : { kind: 'code', markup: numberedLines(code) };
}

/** Returns highlighted code; `undefined` for an unknown language, and for lines that would take too long. */
function highlighted(text: string, language: string): string | undefined {
  const isPlain = language === 'txt' || language === 'text' || language === 'log';
  if (isPlain || !highlighter.getLanguage(language)) return undefined;
  if (text.split('\n').some((line) => line.length > LINE_CHARACTERS_MAX)) return undefined;
  return highlighter.highlight(text, { language, ignoreIllegals: true }).value;
}

/** Puts each line into an element. An element over several lines is closed at each line's end and opened again. */
function numberedLines(markup: string): string {
  const open: string[] = [];
  // The last line end does not begin another line.
  const lines = markup
    .replace(/\n$/, '')
    .split('\n')
    .map((line) => {
      const before = open.join('');
      for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
        if (tag === '</span>') open.pop();
        else open.push(tag);
      }
      return `<span class="line">${before}${line}${'</span>'.repeat(open.length)}</span>`;
    });
  return lines.join('');
}

/** Returns a renderer in which HTML stays text, and only links to the web become links. */
function documents(): ReturnType<typeof MarkdownIt> {
  const made = MarkdownIt({
    html: false,
    linkify: true,
    highlight: (text, language) => highlighted(text, language.toLowerCase()) ?? '',
  });
  made.validateLink = (address) => LINK.test(address) || OWN_IMAGE.test(address);
  const { rules } = made.renderer;
  rules['link_open'] = (tokens, index, options, _, self) => {
    tokens[index]?.attrSet('rel', 'noopener noreferrer nofollow');
    tokens[index]?.attrSet('target', '_blank');
    return self.renderToken(tokens, index, options);
  };
  const image = rules['image'];
  rules['image'] = (tokens, index, options, environment, self) => {
    const token = tokens[index];
    const address = String(token?.attrGet('src') ?? '');
    if (image && OWN_IMAGE.test(address)) return image(tokens, index, options, environment, self);
    return made.utils.escapeHtml(token?.content || address);
  };
  return made;
}
