import MarkdownIt from 'markdown-it';
import { limitLinks, relativePlace, withRelativeLinks } from '../util/markdown.ts';
import { highlighter } from './languages.ts';
import { addressOf, nameOf, parentOf } from './paths.ts';

// Loaded with the first text that needs it, because the libraries are larger than the rest of the application.

/** Longer texts are shown as they are, in characters: they would stop the browser. */
const CHARACTERS_MAX = 256 * 1024;
/** A text with a longer line too: the highlighter's time grows with the square of a line. */
const LINE_CHARACTERS_MAX = 2000;

/** Markup of a text, in which everything that comes from the text is escaped. */
export interface Rendered {
  readonly kind: 'code' | 'markdown';
  readonly markup: string;
}

/** Renders the text of a file by the ending of its name: a document in Markdown, or highlighted code in numbered lines. */
export function rendered(path: string, text: string): Rendered | undefined {
  if (text.length > CHARACTERS_MAX) return undefined;
  const name = nameOf(path);
  const ending = name.slice(name.lastIndexOf('.') + 1).toLowerCase();
  if (ending === 'md' || ending === 'markdown') return { kind: 'markdown', markup: documentOf(path, text) };
  const code = highlighted(text, ending);
  return code === undefined ? undefined : { kind: 'code', markup: numberedLines(code) };
}

/** Renders a document. Its relative links and images lead to files of the drive. */
function documentOf(path: string, text: string): string {
  const folder = parentOf(path).split('/').filter(Boolean);
  return withRelativeLinks(documents().render(text), (relative) => {
    const place = relativePlace(relative, folder);
    if (!place) return undefined;
    return (
      addressOf(`/${place.names.join('/')}`, 'file') +
      (place.section === undefined ? '' : `#${place.section}`)
    );
  });
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

/** Returns a renderer in which HTML stays text. */
function documents(): ReturnType<typeof MarkdownIt> {
  const made = MarkdownIt({
    html: false,
    linkify: true,
    highlight: (text, language) => highlighted(text, language.toLowerCase()) ?? '',
  });
  limitLinks(made);
  return made;
}
