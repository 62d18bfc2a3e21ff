import { expect, test } from 'vitest';
import { markupLines } from '../../../src/util/markup-lines.ts';

test('markupLines closes an element at the end of each of its lines, and opens it again in the next', () => {
  expect(markupLines('a<span class="x">b\n\nc</span>d', 1000)).toEqual([
    'a<span class="x">b</span>',
    '<span class="x"></span>',
    '<span class="x">c</span>d',
  ]);
});

test('markupLines returns nothing for lines that have more characters than allowed together', () => {
  const markup = `${'<span>'.repeat(10)}${'\n'.repeat(10)}${'</span>'.repeat(10)}`;
  expect(markupLines(markup, 11 * 130)).toHaveLength(11);
  expect(markupLines(markup, 11 * 130 - 1)).toBeUndefined();
});
