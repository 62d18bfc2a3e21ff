import { codeLines, languageOf } from './code.ts';
import { MARKUP_LENGTH_MAX, plainLines } from './lines.ts';
import { markdown } from './markdown.ts';

/** The rendered beginning of a text file. */
export interface RenderedText {
  readonly form: 'document' | 'code' | 'plain';
  readonly markup: string;
}

/**
 * Renders text by the file's extension: Markdown as a document, code with highlighting. Text whose markup would be too long
 * stays plain.
 */
export function renderText(name: string, text: string): RenderedText {
  const rendered = documentOrCode(name, text);
  if (rendered && rendered.markup.length <= MARKUP_LENGTH_MAX) return rendered;
  return { form: 'plain', ...plainLines(text) };
}

function documentOrCode(name: string, text: string): RenderedText | undefined {
  const document = /\.(md|markdown)$/i.test(name) ? markdown(text) : undefined;
  if (document) return { form: 'document', ...document };
  const language = languageOf(name);
  return language === undefined ? undefined : { form: 'code', ...codeLines(text, language) };
}
