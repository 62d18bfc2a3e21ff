import { codeLines, languageOf } from './code.ts';
import { plainLines } from './lines.ts';
import { markdown } from './markdown.ts';

/** The rendered beginning of a text file. */
export interface RenderedText {
  readonly form: 'document' | 'code' | 'plain';
  readonly markup: string;
}

/** Renders text by the file's extension: Markdown as a document, code with highlighting. */
export function renderText(name: string, text: string): RenderedText {
  const document = /\.(md|markdown)$/i.test(name) ? markdown(text) : undefined;
  if (document) return { form: 'document', ...document };
  const language = languageOf(name);
  if (language === undefined) return { form: 'plain', ...plainLines(text) };
  return { form: 'code', ...codeLines(text, language) };
}
