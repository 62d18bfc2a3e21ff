import { type Html, html } from '../../util/html.ts';
import { MARKUP_LENGTH_MAX } from '../links/web/lines.ts';

/** Maximum number of rows that a page shows. */
const ROWS_MAX = 1000;

/** Maximum number of cells in a row that fits into the page. */
const CELLS_MAX = MARKUP_LENGTH_MAX / '<td></td>'.length;

interface CsvFile {
  readonly name: string;
  /** Lines end with `\n`. */
  readonly text: string;
  /** Whether the text is only the beginning of the file. */
  readonly isCut: boolean;
}

/**
 * Returns a page with the first rows of comma-separated values (RFC 4180) as a table. It ends before a row that would make
 * it too long: an empty cell takes nine characters.
 */
export function csvPage({ name, text, isCut }: CsvFile): Html {
  const rows: Html[] = [];
  let length = 0;
  let isLonger = isCut;
  for (const cells of rowsOf(text)) {
    const row = html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`;
    length += row.markup.length;
    if (rows.length === ROWS_MAX || length > MARKUP_LENGTH_MAX) {
      isLonger = true;
      break;
    }
    rows.push(row);
  }
  return html`<!doctype html>
<html>
<head><meta charset="utf-8"><title>${name}</title>
<style>body{font-family:sans-serif}table{border-collapse:collapse}td{border:1px solid #999;padding:.2em .5em;white-space:pre-wrap}</style>
</head>
<body>
<table>
${rows}</table>
${isLonger ? html`<p>The file has more rows than are shown here.</p>` : undefined}
</body>
</html>
`;
}

/** Yields the cells of each row; an empty line has none. Ends after the beginning of a row that has too many. */
function* rowsOf(text: string): Generator<readonly string[]> {
  const cell = cellPattern(separatorIn(text));
  let row: string[] = [];
  while (cell.lastIndex < text.length) {
    const [, quoted, plain = '', end] = cell.exec(text) ?? [];
    row.push((quoted ?? '').replaceAll('""', '"') + plain);
    if (row.length > CELLS_MAX) return yield row;
    if (end !== '\n' && cell.lastIndex < text.length) continue;
    if (row.length > 1 || row[0] !== '') yield row;
    row = [];
  }
}

/**
 * Returns the pattern of a cell, quoted or not, with its end; unclosed quotes reach to the end of the text. It matches
 * at every position, also in text that is not CSV.
 */
function cellPattern(separator: string): RegExp {
  return new RegExp(`(?:"([^"]*(?:""[^"]*)*)"?)?([^${separator}\\n]*)(${separator}|\\n|$)`, 'gy');
}

/** Returns the separator: programs use the one that their locale's decimal comma leaves free. */
function separatorIn(text: string): string {
  const [line = ''] = text.split('\n', 1);
  const count = (separator: string) => line.split(separator).length;
  return [';', '\t'].reduce((most, one) => (count(one) > count(most) ? one : most), ',');
}
