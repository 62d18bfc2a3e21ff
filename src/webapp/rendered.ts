import MarkdownIt from 'markdown-it';
import { endingOf } from '../util/file-name.ts';
import { limitLinks, relativePlace, withRelativeLinks } from '../util/markdown.ts';
import { markupLines } from '../util/markup-lines.ts';
import { highlighter } from './languages.ts';
import { addressOf, nameOf, parentOf } from './paths.ts';

// Loaded with the first text that needs it, because the libraries are larger than the rest of the application.

/** Longer texts are shown as they are, in characters: they would stop the browser. */
const CHARACTERS_MAX = 256 * 1024;
/** A text with a longer line too: the highlighter's time grows with the square of a line. */
const LINE_CHARACTERS_MAX = 2000;
/** Maximum length of highlighted lines, in characters: many times that of any text that was not made for it. */
const LINES_LENGTH_MAX = 16_000_000;

/** Markup of a text, in which everything that comes from the text is escaped. */
export interface Rendered {
  readonly kind: 'code' | 'markdown';
  readonly markup: string;
}

/** Renders the text of a file by the ending of its name: a document in Markdown, or highlighted code in numbered lines. */
export function rendered(path: string, text: string): Rendered | undefined {
  if (text.length > CHARACTERS_MAX) return undefined;
  const name = nameOf(path);
  // Some languages have names of files instead, such as `Makefile`.
  const ending = endingOf(name) || name.toLowerCase();
  if (ending === 'md' || ending === 'markdown') return { kind: 'markdown', markup: documentOf(path, text) };
  const code = highlighted(text, ending);
  // The last line end does not begin another line.
  const lines = code === undefined ? undefined : markupLines(code.replace(/\n$/, ''), LINES_LENGTH_MAX);
  if (!lines) return undefined;
  return { kind: 'code', markup: lines.map((line) => `<span class="line">${line}</span>`).join('') };
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
