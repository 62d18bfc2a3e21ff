import { expect, test } from 'vitest';
import { csvPage } from '../../../../src/service/previews/csv-page.ts';

/** Returns the cells of the table of `text`, row by row. */
function cellsOf(text: string): string[][] {
  const { markup } = csvPage({ name: 'x.csv', text, isCut: false });
  return Array.from(markup.matchAll(/<tr>(.*?)<\/tr>/gs), ([, row = '']) =>
    Array.from(row.matchAll(/<td>(.*?)<\/td>/gs), ([, cell = '']) => cell),
  );
}

test.each<[string, string[][]]>([
  ['', []],
  ['a', [['a']]],
  [
    'a,b\nc,d',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  [
    'a,b\n\nc,d\n',
    [
      ['a', 'b'],
      ['c', 'd'],
    ],
  ],
  [',\n', [['', '']]],
  [
    'a;b;1,5\nc;d;2\n',
    [
      ['a', 'b', '1,5'],
      ['c', 'd', '2'],
    ],
  ],
  ['a\tb\tc,d\n', [['a', 'b', 'c,d']]],
  ['"a,b",c\n', [['a,b', 'c']]],
  [
    '"two\nlines",c\nd,e\n',
    [
      ['two\nlines', 'c'],
      ['d', 'e'],
    ],
  ],
  ['"say ""no""",c\n', [['say &quot;no&quot;', 'c']]],
  ['"",c\n', [['', 'c']]],
  ['"open,c\nd', [['open,c\nd']]],
  ['"a"b,c\n', [['ab', 'c']]],
  ['a"b,c\n', [['a&quot;b', 'c']]],
])('the table of %j has the rows %j', (text, rows) => {
  expect(cellsOf(text)).toEqual(rows);
});

test('a megabyte of unclosed quotes is parsed in one pass', () => {
  expect(cellsOf(`${'"x,'.repeat(300_000)}\n`).length).toBeGreaterThan(0);
});

test('the page of a truncated file says that there are more rows and escapes its name', () => {
  const { markup } = csvPage({ name: '<x>.csv', text: 'a,b', isCut: true });
  expect(markup).toContain('more rows');
  expect(markup).toContain('<title>&lt;x&gt;.csv</title>');
});
