import { describe, expect, test } from 'vitest';
import { codeLines, languageOf } from '../../../../../src/service/links/web/code.ts';

/** On a busy machine any text may take seconds. */
const PATIENT_MS = 60_000;

describe('languageOf', () => {
  test.each([
    ['main.ts', 'ts'],
    ['PAGE.HTML', 'html'],
    ['Makefile', 'makefile'],
    ['notes.txt', undefined],
    ['LICENSE', undefined],
    ['odd.constructor', undefined],
    ['constructor', undefined],
    ['python', undefined],
  ])('%s is in %s', (name, language) => {
    expect(languageOf(name)).toBe(language);
  });
});

describe('codeLines', () => {
  const linesOf = (markup: string) => markup.split('<span class="line">').length - 1;

  test('gives each line an element, in which all spans that it opens are closed', () => {
    const { markup } = codeLines('/* one\n   two */\nlet x = `a\nb\n`;', 'js', PATIENT_MS);
    const lines = [
      ...markup.matchAll(/<span class="line">(.*?)<\/span>(?=<span class="line">|<\/pre>)/g),
    ].map(([, line = '']) => line);
    expect(lines).toHaveLength(5);
    expect(lines[0]).toBe('<span class="hljs-comment">/* one</span>');
    expect(lines[1]).toBe('<span class="hljs-comment">   two */</span>');
    for (const line of lines) expect(line.match(/<span/g)?.length).toBe(line.match(/<\/span>/g)?.length);
  });

  test.each(['html', 'js', 'md'])('escapes markup in %s', (language) => {
    const { markup } = codeLines('<script>alert("1")</script>\n<img src=x onerror=1>', language);
    expect(markup).not.toMatch(/<(?!\/?span|\/?pre)/);
    expect(markup.replaceAll(/<[^>]*>/g, '')).toContain('&lt;script&gt;alert(&quot;1&quot;)');
  });

  // Each takes the highlighter many seconds: its time grows with the square of a line's or a text's length.
  test.each([
    ['c', `${'__a'.repeat(20_000)}\nint main;`],
    ['bash', '0'.repeat(60_000)],
    ['c', `${'_a'.repeat(900)}\n`.repeat(30)],
  ])('shows %s that would hold up the service as plain text', (language, text) => {
    const { markup } = codeLines(text, language);
    expect(linesOf(markup)).toBe(text.split('\n').length);
    expect(markup.replaceAll(/<[^>]*>/g, '').slice(0, 50)).toBe(text.slice(0, 50));
  });
});
