import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { DRIVE_PAGE_POLICY, drivePage } from '../../../../src/dav/answers/folder-page.ts';

const file = (name: string) => ({
  kind: 'file' as const,
  name,
  url: `/${name}`,
  sizeBytes: 1,
  modifiedMs: 0,
});

describe('the page of a folder', () => {
  test('a folder page lists folders before files, each by name', () => {
    const items = [file('b'), file('a'), { kind: 'folder' as const, name: 'z', url: '/z/' }];
    const names = [
      ...drivePage({ path: '/', parentUrl: '/', items }).matchAll(/<a href="[^"]*">([^<]*)</g),
    ].map(([, name]) => name);
    expect(names).toEqual(['z/', 'a', 'b']);
  });

  test('a folder page shows sizes and times of files only', () => {
    const items = [
      { ...file('a'), sizeBytes: 1_234_567, modifiedMs: Date.UTC(2026, 0, 2, 3, 4) },
      { kind: 'folder' as const, name: 'z', url: '/z/' },
    ];
    const page = drivePage({ path: '/', parentUrl: '/', items });
    expect(page).toContain('<td>1.2 MB</td><td>2026-01-02 03:04 UTC</td>');
    expect(page).toContain('<td><a href="/z/">z/</a></td><td></td><td></td>');
  });

  test('a folder page links to its parent, except at the root', () => {
    expect(drivePage({ path: '/a b/c', parentUrl: '/x/a%20b/', items: [] })).toContain(
      '<a href="/x/a%20b/">Up one folder</a>',
    );
    expect(drivePage({ path: '/', parentUrl: '/', items: [] })).not.toContain('Up one folder');
  });

  test('a folder page escapes names', () => {
    const name = '"><script>alert(1)</script>&\'';
    const page = drivePage({ path: `/${name}`, parentUrl: '/', items: [file(name)] });
    expect(page).not.toContain('<script');
    expect(page).not.toContain("'");
  });

  test('a folder page has an apostrophe of a URL percent-encoded, because lftp reads a character reference there as &', () => {
    const page = drivePage({ path: "/it's/a", parentUrl: "/it's/", items: [file("that's")] });
    expect(page).toContain('<a href="/it%27s/">');
    expect(page).toContain('<a href="/that%27s">');
  });

  test('the policy of a folder page allows exactly its style sheet', () => {
    const [, style = ''] =
      /<style>([\s\S]*)<\/style>/.exec(drivePage({ path: '/', parentUrl: '/', items: [] })) ?? [];
    const hash = createHash('sha256').update(style).digest('base64');
    expect(DRIVE_PAGE_POLICY).toContain(`style-src 'sha256-${hash}'`);
  });

  test('a folder page shows at most 10,000 rows and says so, and says when it is empty', () => {
    const items = Array.from({ length: 10_001 }, (_, index) => file(`f${index}`));
    const page = drivePage({ path: '/', parentUrl: '/', items });
    expect(page.match(/<tr class/g)).toHaveLength(10_000);
    expect(page).toContain('Showing 10000 of 10001 entries');
    expect(drivePage({ path: '/', parentUrl: '/', items: [] })).toContain('This folder is empty.');
  });
});
