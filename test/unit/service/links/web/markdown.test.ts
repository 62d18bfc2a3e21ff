import { describe, expect, test } from 'vitest';
import { markdown } from '../../../../../src/service/links/web/markdown.ts';

/** Time limit long enough for a busy machine, in ms. */
const PATIENT_MS = 60_000;
const rendered = (text: string) => markdown(text, PATIENT_MS)?.markup ?? '';

describe('markdown', () => {
  test('markdown renders headings, emphasis, tables and highlighted code', () => {
    const text = '# Title\n\nSome *words*.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nlet a;\n```\n';
    const document = rendered(text);
    for (const markup of [
      '<h1 id="section-title">Title</h1>',
      '<em>words</em>',
      '<td>2</td>',
      'class="hljs-keyword">let</span>',
    ])
      expect(document).toContain(markup);
  });

  test.each([
    '<script>alert(1)</script>',
    'text <img src=x onerror=alert(1)> text',
    '<svg/onload=alert(1)>',
    '<a href="javascript:alert(1)">x</a>',
    '```<script>\n</code><script>alert(1)</script>\n```',
    '```js"><img src=x onerror=alert(1)>\nx\n```',
    '[x](<https://a.example/"onmouseover="alert(1)>)',
    '![x" onerror="alert(1)](https://a.example/i.png "y\\" onload=\\"alert(1)")',
  ])('markdown shows the markup %s as text', (text) => {
    const document = rendered(text);
    expect(document).not.toMatch(/<(script|img|svg|iframe)/i);
    for (const [tag] of document.matchAll(/<[a-z][^>]*>/g)) {
      expect(tag.replaceAll(/"[^"]*"/g, '""')).not.toMatch(/\son/i);
      expect(tag).not.toMatch(/="\s*javascript:/i);
    }
  });

  test.each([
    '[x](javascript:alert(1))',
    '[x](JaVaScRiPt:alert(1))',
    '[x](&#106;avascript:alert(1))',
    '[x](java\\nscript:alert(1))',
    '[x](data:text/html;base64,PHNjcmlwdD4=)',
    '[x](vbscript:x)',
    '[x](file:///etc/passwd)',
    '[x](//evil.example/)',
    '![x](data:image/svg+xml;base64,PHN2Zz4=)',
  ])('markdown makes no link or image of %s', (text) => {
    expect(rendered(text)).not.toMatch(/\s(href|src)=/);
  });

  test('markdown renders 1,300 code blocks', () => {
    const blocks = 1300;
    const document = rendered('```js\nx()\n```\n'.repeat(blocks));
    expect(document.match(/<pre>/g)?.length).toBe(blocks);
    expect(document).toContain('<span class="hljs-title function_">x</span>');
  });

  test('markdown marks links to other sites noopener, noreferrer and nofollow', () => {
    expect(rendered('[x](https://a.example/?a&b)')).toContain(
      '<a href="https://a.example/?a&amp;b" rel="noopener noreferrer nofollow" target="_blank">x</a>',
    );
  });

  test('markdown turns an image of another site into a link and shows an embedded image', () => {
    expect(rendered('![A *map*](https://a.example/map.png)')).toContain(
      '<a href="https://a.example/map.png"',
    );
    expect(rendered('![dot](data:image/png;base64,iVBORw0KGgo=)')).toContain(
      '<img src="data:image/png;base64,iVBORw0KGgo=" alt="dot"',
    );
  });
});
