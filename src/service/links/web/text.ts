import { codeLines, languageOf } from './code.ts';
import { plainLines } from './lines.ts';
import { markdown } from './markdown.ts';

/** The beginning of a text file as its page shows it. */
export interface RenderedText {
  readonly form: 'document' | 'code' | 'plain';
  readonly markup: string;
}

/** Renders text by the ending of the file's name: Markdown as a document, code in colours. */
export function renderText(name: string, text: string): RenderedText {
  const document = /\.(md|markdown)$/i.test(name) ? markdown(text) : undefined;
  if (document) return { form: 'document', ...document };
  const language = languageOf(name);
  if (language === undefined) return { form: 'plain', ...plainLines(text) };
  return { form: 'code', ...codeLines(text, language) };
}
