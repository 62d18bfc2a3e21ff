import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, headerJson, put, refusal, refusalIn, send } from '../support/service-client.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

function preview(path: string, by = service): Promise<Answered> {
  return send(`${by.url}/2/files/get_preview`, {
    method: 'POST',
    headers: { authorization: `Bearer ${by.token}`, 'dropbox-api-arg': headerJson({ path }) },
  });
}

const refused = (tag: string) => refusal(409, tag, { '.tag': tag });

describe('files/get_preview', () => {
  test('get_preview answers a table of comma-separated values as HTML, with the metadata in its header', async () => {
    const { rev } = await put(service, '/Prices.CSV', 'name,price\r\n"Nuts, ""salted""",<b>2</b>\r\n');
    const { status, headers, text } = await preview('/prices.csv');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(JSON.parse(headers.get('dropbox-api-result') ?? '')).toMatchObject({ rev, name: 'Prices.CSV' });
    expect(text).toContain('<title>Prices.CSV</title>');
    expect(text).toContain('<tr><td>name</td><td>price</td></tr>');
    expect(text).toContain('<tr><td>Nuts, &quot;salted&quot;</td><td>&lt;b&gt;2&lt;/b&gt;</td></tr>');
    expect(text).not.toContain('more rows');
  });

  test('get_preview shows the first thousand rows of a long table and says that there are more', async () => {
    await put(service, '/long.csv', Array.from({ length: 1001 }, (_, row) => `${row},x\n`).join(''));
    const { text } = await preview('/long.csv');
    expect(text).toContain('<td>999</td>');
    expect(text).not.toContain('<td>1000</td>');
    expect(text).toContain('The file has more rows than are shown here.');
  });

  test('get_preview ends a wide table before it has two million characters, even in its first row', async () => {
    await put(service, '/wide.csv', `${'x,'.repeat(1000)}\n`.repeat(500));
    const wide = (await preview('/wide.csv')).text;
    expect(wide.length).toBeLessThan(2_001_000);
    expect(wide.match(/<tr>/g)?.length).toBeGreaterThan(190);
    await put(service, '/commas.csv', ','.repeat(1024 * 1024));
    const commas = (await preview('/commas.csv')).text;
    for (const text of [wide, commas]) expect(text).toContain('The file has more rows than are shown here.');
    expect(commas.length).toBeLessThan(1000);
  });

  test('get_preview answers an .ai file that is a PDF unchanged', async () => {
    const bytes = `%PDF-1.5\n${'x'.repeat(100_000)}`;
    await put(service, '/drawing.ai', bytes);
    const { status, headers, text } = await preview('/drawing.ai');
    expect([status, headers.get('content-type'), text]).toEqual([200, 'application/pdf', bytes]);
  });

  test.each([
    ['/postscript.ai', '%!PS-Adobe-3.0'],
    ['/empty.ai', ''],
    ['/binary.csv', 'a\0b'],
    ['/latin1.csv', Buffer.from('name\nJos\xe9\n', 'latin1')],
  ])(
    'get_preview of %s, whose bytes are not what its name says, answers unsupported_content',
    async (path, bytes) => {
      await put(service, path, bytes);
      expect(refusalIn(await preview(path))).toEqual(refused('unsupported_content'));
    },
  );

  test.each([
    '/report.docx',
    '/sheet.xlsx',
    '/paper.pdf',
    '/notes.md',
    '/notes.txt',
    '/csv',
    '/photo.jpg',
    '/a.constructor',
  ])('get_preview of %s answers unsupported_extension', async (path) => {
    await put(service, path, 'one,two');
    expect(refusalIn(await preview(path))).toEqual(refused('unsupported_extension'));
  });

  test('get_preview answers in_progress while 32 previews wait, and unsupported_content for one that never ends', async () => {
    const clock = new ManualClock();
    const renderProcess = new URL('../support/render-processes/stuck.mjs', import.meta.url);
    const busy = await startTestService({ clock, renderProcess });
    try {
      const names = Array.from({ length: 34 }, (_, number) => `/${number}.csv`);
      for (const name of names) await put(busy, name, 'one,two');
      const answers: string[] = [];
      const asked = names.map(async (name) => {
        const { summary } = refusalIn(await preview(name, busy)) as { summary: string };
        answers.push(summary);
      });
      // One preview is being rendered, and 32 wait.
      await eventually(() => expect(answers).toEqual(['in_progress']));
      await clock.during(Promise.all(asked));
      expect(answers.slice(1)).toEqual(Array.from({ length: 33 }, () => 'unsupported_content'));
    } finally {
      await busy.close();
    }
  });
});
