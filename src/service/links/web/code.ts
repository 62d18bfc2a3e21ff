import { createRequire } from 'node:module';
import type { Html } from '../../../util/html.ts';
import { withinTime } from '../../../util/within-time.ts';
import { numberedLines, plainLines } from './lines.ts';

/** What is used of highlight.js. Its own types would bring a browser's globals into every file of the project. */
interface Highlighter {
  getLanguage(name: string): object | undefined;
  /** Throws for a language it does not know. */
  highlight(
    code: string,
    options: { readonly language: string; readonly ignoreIllegals: boolean },
  ): { readonly value: string };
}

const load = createRequire(import.meta.url);

/** Looked for when davgate starts, so that a missing library is told then, and loaded for the first text: it takes 10 MB. */
const HIGHLIGHTER_FILE = load.resolve('highlight.js/lib/common');

function highlighter(): Highlighter {
  return load(HIGHLIGHTER_FILE);
}

/** Names without an ending that say what is written in them. */
const LANGUAGE_OF_NAME: Readonly<Record<string, string>> = {
  makefile: 'makefile',
  gemfile: 'ruby',
  rakefile: 'ruby',
  '.bashrc': 'bash',
  '.profile': 'bash',
};

/** The language that a file's name tells, for `codeLines`; `undefined` for text that is in none. */
export function languageOf(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (Object.hasOwn(LANGUAGE_OF_NAME, lower)) return LANGUAGE_OF_NAME[lower];
  const ending = lower.includes('.') ? lower.slice(lower.lastIndexOf('.') + 1) : '';
  const isPlain = ending === '' || ending === 'txt' || ending === 'text';
  return !isPlain && highlighter().getLanguage(ending) ? ending : undefined;
}

/** Code in numbered lines, coloured unless that takes longer than `limitMs`. */
export function codeLines(text: string, language: string, limitMs = HIGHLIGHT_MAX_MS): Html {
  const coloured = highlighted(text, language, limitMs);
  return coloured ? numberedLines(markupLines(coloured)) : plainLines(text);
}

/** Nobody writes such lines, and the highlighter takes time that grows with their square. */
const LINE_MAX_CHARACTERS = 2000;
/** Enough for any text that a page shows, even on a busy machine. */
const HIGHLIGHT_MAX_MS = 2_000;

/** Markup for the text, which the highlighter escapes; `undefined` where it would take longer than `limitMs`. */
export function highlighted(text: string, language: string, limitMs = HIGHLIGHT_MAX_MS): Html | undefined {
  if (text.split('\n').some((line) => line.length > LINE_MAX_CHARACTERS)) return undefined;
  const result = withinTime(() => highlighter().highlight(text, { language, ignoreIllegals: true }), limitMs);
  return result && { markup: result.value };
}

/** What spans several lines is closed at each line's end and opened again in the next. */
function markupLines({ markup }: Html): Html[] {
  const open: string[] = [];
  return markup.split('\n').map((line) => {
    const before = open.join('');
    for (const [tag] of line.matchAll(/<span[^>]*>|<\/span>/g)) {
      if (tag === '</span>') open.pop();
      else open.push(tag);
    }
    return { markup: `${before}${line}${'</span>'.repeat(open.length)}` };
  });
}
