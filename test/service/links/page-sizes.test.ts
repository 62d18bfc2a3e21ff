import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, send, sharedLink } from '../../support/service-client.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

/** Returns the page of a link, or of the item `below` a linked folder. */
async function pageOf(path: string, below: readonly string[] = []): Promise<string> {
  const url = await sharedLink(service, path);
  const { status, text } = await send(url.replace('/h?', `/${['h', ...below].join('/')}?`), {});
  expect(status).toBe(200);
  return text;
}

describe('texts that were made for a large page', () => {
  test.each([
    [
      'with 1,500 references to one long address',
      'references.md',
      `[a]: https://x/?${'&'.repeat(1000)}\n\n${'[a] '.repeat(1500)}`,
    ],
    ['of empty lines in deep elements', 'nested.js', `${'`${'.repeat(50)}${'\n'.repeat(3000)}`],
  ])('the page of a short text %s has fewer than 3 million characters', async (_, name, text) => {
    await put(service, `/${name}`, text);
    expect((await pageOf(`/${name}`)).length).toBeLessThan(3_000_000);
  });

  test('the page of a document with 2,000 references to one long path has fewer than 3 million characters', async () => {
    await put(service, '/docs/paths.md', `[a]: ${'a/'.repeat(2000)}\n\n${'[a] '.repeat(2000)}`);
    const page = await pageOf('/docs', ['paths.md']);
    expect(page.length).toBeLessThan(3_000_000);
    expect(page).toContain('/h/a/a/a/');
  });
});

describe('the pages of items in a folder that is 500 folders deep', () => {
  const names = Array.from({ length: 500 }, (_, depth) => String(depth).padStart(30, 'x'));
  const folder = `/deep/${names.join('/')}`;

  test('the page of a document with 2,000 relative links, each with a long path, has fewer than 3 million characters', async () => {
    await put(service, `${folder}/links.md`, '[a](b)\n'.repeat(2000));
    const page = await pageOf('/deep', [...names, 'links.md']);
    expect(page.length).toBeLessThan(3_000_000);
    expect(page).toContain(`/${names.at(-1)}/b?`);
    // Each folder above has its link, with all folders above it.
    expect(page.match(/<\/a> \/ /g)).toHaveLength(32);
    expect(page).toMatch(new RegExp(`/${names.at(-1)}\\?[^"]*">${names.at(-1)}</a> / </nav>`));
  });

  test('the page of a folder with long URLs shows fewer items, has fewer than 5 million characters, and says so', async () => {
    for (let index = 0; index < 200; index++) await put(service, `${folder}/images/${index}.png`, 'text');
    const page = await pageOf('/deep', [...names, 'images']);
    expect(page.length).toBeLessThan(5_000_000);
    expect(page.match(/<li /g)?.length).toBeGreaterThan(100);
    expect(page).toContain('This folder has more items than one page can show.');
  });
});
