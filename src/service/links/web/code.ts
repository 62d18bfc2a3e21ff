import { createRequire } from 'node:module';
import { endingOf } from '../../../util/file-name.ts';
import type { Html } from '../../../util/html.ts';
import { markupLines } from '../../../util/markup-lines.ts';
import { withinTime } from '../../../util/within-time.ts';
import { MARKUP_LENGTH_MAX, numberedLines, plainLines } from './lines.ts';

/** The part of highlight.js that is used. Its own types would add a browser's globals to every file of the project. */
interface Highlighter {
  getLanguage(name: string): object | undefined;
  /** Throws for an unknown language. */
  highlight(
    code: string,
    options: { readonly language: string; readonly ignoreIllegals: boolean },
  ): { readonly value: string };
}

const load = createRequire(import.meta.url);

/**
 * Resolved when davgate starts, so that a missing library is reported then; loaded with the first text, because it
 * takes 10 MB.
 */
const HIGHLIGHTER_FILE = load.resolve('highlight.js/lib/common');

function highlighter(): Highlighter {
  return load(HIGHLIGHTER_FILE);
}

/** Languages of names without an extension. */
const LANGUAGE_OF_NAME: Readonly<Record<string, string>> = {
  makefile: 'makefile',
  gemfile: 'ruby',
  rakefile: 'ruby',
  '.bashrc': 'bash',
  '.profile': 'bash',
};

/** Returns the language of a file by its name, for `codeLines`; `undefined` for plain text. */
export function languageOf(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (Object.hasOwn(LANGUAGE_OF_NAME, lower)) return LANGUAGE_OF_NAME[lower];
  const ending = endingOf(name);
  const isPlain = ending === '' || ending === 'txt' || ending === 'text';
  return !isPlain && highlighter().getLanguage(ending) ? ending : undefined;
}

/** Returns code in numbered lines, highlighted unless that takes longer than `limitMs` or too much markup. */
export function codeLines(text: string, language: string, limitMs = HIGHLIGHT_MS_MAX): Html {
  const coloured = highlighted(text, language, limitMs);
  const lines = coloured && markupLines(coloured.markup, MARKUP_LENGTH_MAX);
  return lines ? numberedLines(lines.map((markup) => ({ markup }))) : plainLines(text);
}

/** Maximum length of a highlighted line: the highlighter's time grows with its square. */
const LINE_CHARACTERS_MAX = 2000;
/** Maximum time for highlighting, in ms; enough for any text that a page shows, even on a busy machine. */
const HIGHLIGHT_MS_MAX = 2_000;

/**
 * Returns the highlighter's markup, in which the text is escaped; `undefined` if it would take longer than `limitMs`.
 */
export function highlighted(text: string, language: string, limitMs = HIGHLIGHT_MS_MAX): Html | undefined {
  if (text.split('\n').some((line) => line.length > LINE_CHARACTERS_MAX)) return undefined;
  const result = withinTime(() => highlighter().highlight(text, { language, ignoreIllegals: true }), limitMs);
  return result && { markup: result.value };
}
