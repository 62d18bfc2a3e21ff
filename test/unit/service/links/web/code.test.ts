import { describe, expect, test } from 'vitest';
import { codeLines, languageOf } from '../../../../../src/service/links/web/code.ts';

/** Time limit long enough for a busy machine, in ms. */
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
  ])('languageOf(%j) is %j', (name, language) => {
    expect(languageOf(name)).toBe(language);
  });
});

describe('codeLines', () => {
  const linesOf = (markup: string) => markup.split('<span class="line">').length - 1;

  test('codeLines wraps each line in an element, and closes in it every span that it opens', () => {
    const { markup } = codeLines('/* one\n   two */\nlet x = `a\nb\n`;', 'js', PATIENT_MS);
    const lines = [
      ...markup.matchAll(/<span class="line">(.*?)<\/span>(?=<span class="line">|<\/pre>)/g),
    ].map(([, line = '']) => line);
    expect(lines).toHaveLength(5);
    expect(lines[0]).toBe('<span class="hljs-comment">/* one</span>');
    expect(lines[1]).toBe('<span class="hljs-comment">   two */</span>');
    for (const line of lines) expect(line.match(/<span/g)?.length).toBe(line.match(/<\/span>/g)?.length);
  });

  test.each(['html', 'js', 'md'])('codeLines escapes markup in %s', (language) => {
    const { markup } = codeLines('<script>alert("1")</script>\n<img src=x onerror=1>', language);
    expect(markup).not.toMatch(/<(?!\/?span|\/?pre)/);
    expect(markup.replaceAll(/<[^>]*>/g, '')).toContain('&lt;script&gt;alert(&quot;1&quot;)');
  });

  // Highlighting any of these would take many seconds: its time grows with the square of the length.
  test.each([
    ['c', `${'__a'.repeat(20_000)}\nint main;`],
    ['bash', '0'.repeat(60_000)],
    ['c', `${'_a'.repeat(900)}\n`.repeat(30)],
  ])('codeLines shows a text of the language %s that would take too long as plain text', (language, text) => {
    const { markup } = codeLines(text, language);
    expect(linesOf(markup)).toBe(text.split('\n').length);
    expect(markup.replaceAll(/<[^>]*>/g, '').slice(0, 50)).toBe(text.slice(0, 50));
  });
});
