import MarkdownIt from 'markdown-it';
import { describe, expect, test } from 'vitest';
import { limitLinks, relativePlace, withRelativeLinks } from '../../../src/util/markdown.ts';

function rendered(text: string): string {
  const made = MarkdownIt({ html: false, linkify: true });
  limitLinks(made);
  return made.render(text).trim();
}

/** Completes relative links, and shows what the page was asked for. */
const completed = (text: string) =>
  withRelativeLinks(rendered(text), (address, as) => `/${as}?a=1&to=${address}`);

describe('headings', () => {
  test.each([
    ['# An account', 'section-an-account'],
    ['## `code` and *more*!', 'section-code-and-more'],
    ['# Größe & Maß', 'section-größe--maß'],
    ['# "><script>', 'section-script'],
  ])('the heading %s gets the id %s', (text, id) => {
    expect(rendered(text)).toContain(` id="${id}">`);
  });

  test('headings of the same name get ids with numbers', () => {
    const ids = [...rendered('# a\n# a\n# a').matchAll(/id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids).toEqual(['section-a', 'section-a-1', 'section-a-2']);
  });

  test.each(['[x](#an-account)', '[x](#An-Account)', '[x](#An%2DAccount)'])(
    '%s leads to the heading “An account”',
    (text) => {
      expect(completed(text)).toBe('<p><a href="#section-an-account">x</a></p>');
    },
  );
});

describe('relative links', () => {
  test.each([
    ['[x](other.md)', '<a href="/link?a=1&amp;to=other.md">x</a>'],
    ['[x](<a b.md> "title")', '<a href="/link?a=1&amp;to=a%20b.md">x</a>'],
    ['[x](../up/?a&b#c)', '<a href="/link?a=1&amp;to=../up/?a&amp;b#c">x</a>'],
    ['![A "b"](pic.png)', '<img src="/image?a=1&amp;to=pic.png" alt="A &quot;b&quot;">'],
  ])('%s leads to the address that the page gives it', (text, markup) => {
    expect(completed(text)).toBe(`<p>${markup}</p>`);
  });

  test('relative links and images that lead nowhere become their text', () => {
    const markup = rendered('[one **two**](a.md) ![pic < x](b.png)');
    expect(withRelativeLinks(markup, () => undefined)).toBe(
      '<p><a>one <strong>two</strong></a> pic &lt; x</p>',
    );
  });

  test('an address from the page is escaped', () => {
    const markup = rendered('[x](a) ![y](b)');
    expect(withRelativeLinks(markup, () => '"><script>')).not.toContain('<script>');
  });

  test.each([
    '`<a data-to="x">`',
    '<a data-to="x">',
    '[x](<"><a data-to="y>)',
    '![<a data-to="x">](https://a.example/)',
    '```\n<img data-image="x" alt="">\n```',
  ])('the text %s is not taken for a relative link', (text) => {
    const addresses: string[] = [];
    withRelativeLinks(rendered(text), (address) => {
      addresses.push(address);
      return '/';
    });
    expect(addresses.filter((address) => address === 'x' || address === 'y')).toEqual([]);
  });

  test.each([
    'javascript:alert(1)',
    'data:text/html,x',
    'file:///etc',
    '//evil.example/',
    'c:/x',
    '\\\\evil\\x',
  ])('a link to %s stays text', (address) => {
    const markup = completed(`[x](${address})`);
    if (address.startsWith('\\')) expect(markup).not.toMatch(/href="(\\|\/\/|%5C%5C)/);
    else expect(markup).not.toContain('<a');
  });
});

describe('documents that repeat long addresses', () => {
  test('beyond a million characters of addresses, links and images become text', () => {
    const address = `x?${'&'.repeat(998)}`;
    const markup = rendered(`[a]: ${address}\n\n${'[a] '.repeat(1500)}![<b>][a] [x](https://a.example)`);
    expect(markup.match(/<a data-to=/g)).toHaveLength(1000);
    expect(markup.match(/<a>a<\/a>/g)).toHaveLength(500);
    expect(markup).toContain(' &lt;b&gt; <a>x</a></p>');
  });

  test('an embedded image and its title that are repeated count as addresses', () => {
    const image = 'data:image/png;base64,AAAA';
    const markup = rendered(`[a]: ${image} "${'x'.repeat(10_000)}"\n\n${'![a] '.repeat(500)}`);
    expect(markup.match(/<img/g)).toHaveLength(99);
  });

  test('the page is asked once for each address, and its URLs take a million characters at most', () => {
    const markup = rendered(`${'[a](b) ![a](b) '.repeat(1000)}[c](d)`);
    const asked: string[] = [];
    const page = withRelativeLinks(markup, (address, as) => {
      asked.push(`${as} ${address}`);
      return 'x'.repeat(10_000);
    });
    expect(asked).toEqual(['link b']);
    expect(page.match(/<a href="x/g)).toHaveLength(101);
    expect(page.length).toBeLessThan(1_100_000);
  });
});

describe('the place of a relative link', () => {
  test.each([
    ['b.md', 'docs/b.md', undefined],
    ['./b.md#An%20account', 'docs/b.md', 'section-an-account'],
    ['../a%20%23.md?x#y', 'a #.md', 'section-y'],
    ['/b.md', 'b.md', undefined],
    ['sub/', 'docs/sub', undefined],
    ['..', '', undefined],
    ['../../a.md', undefined, undefined],
    ['/..', undefined, undefined],
    ['%2e%2e/%2e%2e/a.md', undefined, undefined],
    ['a%2fb.md', undefined, undefined],
    ['a%00.md', undefined, undefined],
    ['100%.md', 'docs/100%.md', undefined],
  ])('%s in the folder docs leads to %s', (address, path, section) => {
    const place = relativePlace(address, ['docs']);
    expect([place?.names.join('/'), place?.section]).toEqual([path, section]);
  });
});
