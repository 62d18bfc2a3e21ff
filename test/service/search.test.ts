import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, put, refusal, refusalIn, rpc } from '../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;

beforeAll(async () => {
  service = await startTestService({ clock });
  for (const path of [
    '/Reports/Annual report 2025.pdf',
    '/Reports/report.docx',
    '/Reports/Reporting/notes.txt',
    '/Photos/Müller_am_See.JPG',
    '/Photos/cat.png',
    '/bat cave.txt',
    '/batman car.txt',
    '/song.mp3',
    '/odd/++.c',
  ]) {
    await clock.advance(1000);
    await put(service, path, 'text');
  }
  await put(service, '/Reports/report gone.pdf', 'text');
  await rpc(service, 'files/delete_v2', { path: '/Reports/report gone.pdf' });
});
afterAll(() => service.close());

interface Found {
  readonly matches: {
    readonly metadata: { readonly metadata: { readonly name: string; readonly path_lower: string } };
  }[];
  readonly has_more: boolean;
  readonly cursor?: string;
}

const search = (argument: object): Promise<Answered> => rpc(service, 'files/search_v2', argument);

async function names(query: string, options: object = {}): Promise<string[]> {
  const answered = await search({ query, options });
  expect([answered.status, answered.text]).toEqual([200, expect.any(String)]);
  return (answered.json as Found).matches.map(({ metadata }) => metadata.metadata.name);
}

test('files/search_v2 answers the metadata with its tag and the match type', async () => {
  const { json: metadata } = await rpc(service, 'files/get_metadata', { path: '/Photos/cat.png' });
  const answered = await search({ query: 'CAT' });
  expect([answered.status, answered.json]).toEqual([
    200,
    {
      matches: [{ metadata: { '.tag': 'metadata', metadata }, match_type: { '.tag': 'filename' } }],
      has_more: false,
    },
  ]);
});

test('files/search_v2 finds words in any case and order, the last of them by its beginning', async () => {
  expect(await names('bat c')).toEqual(['bat cave.txt']);
  expect(await names('cave bat')).toEqual(['bat cave.txt']);
  expect((await names('bat')).sort()).toEqual(['bat cave.txt', 'batman car.txt']);
  expect(await names('see müller')).toEqual(['Müller_am_See.JPG']);
  expect(await names('se müller')).toEqual([]);
  expect(await names('MÜLLER se')).toEqual(['Müller_am_See.JPG']);
  expect(await names('mu\u0308ller')).toEqual(['Müller_am_See.JPG']);
  expect(await names('++')).toEqual(['++.c']);
  expect(await names('nothing like it')).toEqual([]);
});

test('files/search_v2 orders by relevance, or by last_modified_time', async () => {
  expect(await names('report')).toEqual(['Reports', 'report.docx', 'Reporting', 'Annual report 2025.pdf']);
  expect(await names('report', { order_by: 'last_modified_time' })).toEqual([
    'report.docx',
    'Annual report 2025.pdf',
    'Reports',
    'Reporting',
  ]);
});

describe('options of files/search_v2', () => {
  test('files/search_v2 with path finds what is below that folder, and nothing below an unknown one', async () => {
    expect(await names('report', { path: '/reports' })).toEqual([
      'report.docx',
      'Reporting',
      'Annual report 2025.pdf',
    ]);
    expect(await names('report', { path: '/none' })).toEqual([]);
    const { json } = await rpc(service, 'files/get_metadata', { path: '/Photos' });
    expect(await names('cat', { path: (json as { id: string }).id })).toEqual(['cat.png']);
  });

  test('files/search_v2 filters by file_extensions and file_categories', async () => {
    expect(await names('report', { file_extensions: ['PDF'] })).toEqual(['Annual report 2025.pdf']);
    expect(await names('report', { file_extensions: ['.docx', 'txt'] })).toEqual(['report.docx']);
    expect(await names('report', { file_categories: ['folder'] })).toEqual(['Reports', 'Reporting']);
    expect(await names('m', { file_categories: [{ '.tag': 'image' }, 'audio'] })).toEqual([
      'Müller_am_See.JPG',
      'song.mp3',
    ]);
    expect(await names('c', { file_categories: ['others'] })).toEqual(['++.c']);
  });

  test('files/search_v2 with file_status deleted finds only deletions', async () => {
    const { json } = await search({ query: 'report', options: { file_status: 'deleted' } });
    expect((json as Found).matches).toEqual([
      {
        metadata: {
          '.tag': 'metadata',
          metadata: {
            '.tag': 'deleted',
            name: 'report gone.pdf',
            path_lower: '/reports/report gone.pdf',
            path_display: '/Reports/report gone.pdf',
          },
        },
        match_type: { '.tag': 'filename' },
      },
    ]);
  });

  test('files/search_v2 with account_id finds files of that account alone', async () => {
    const { json } = await rpc(service, 'users/get_current_account', null);
    const { account_id } = json as { account_id: string };
    expect(await names('cat', { account_id })).toEqual(['cat.png']);
    expect(await names('cat', { account_id: `dbid:${'x'.repeat(35)}` })).toEqual([]);
  });

  test.each([{ match_field_options: { include_highlights: true } }, { include_highlights: true }])(
    'files/search_v2 with %j highlights the matching words',
    async (more) => {
      const { json } = await search({ query: 'report annual', ...more });
      expect(json).toMatchObject({ matches: [{}] });
      expect((json as { matches: { highlight_spans: object }[] }).matches[0]?.highlight_spans).toEqual([
        { highlight_str: 'Annual', is_highlighted: true },
        { highlight_str: ' ', is_highlighted: false },
        { highlight_str: 'report', is_highlighted: true },
        { highlight_str: ' 2025.pdf', is_highlighted: false },
      ]);
    },
  );
});

test('files/search/continue_v2 answers each match once, also when a match is deleted between two pages', async () => {
  const token = await otherToken();
  const paths = Array.from({ length: 2500 }, (_, index) => `/many/item ${index}`);
  const { json } = await rpc(service, 'files/create_folder_batch', { paths }, { token });
  const { async_job_id } = json as { async_job_id: string };
  for (let state = ''; state !== 'complete'; ) {
    const asked = await rpc(service, 'files/create_folder_batch/check', { async_job_id }, { token });
    state = (asked.json as { '.tag': string })['.tag'];
  }
  const argument = { query: 'item', options: { max_results: 1000, file_categories: ['folder'] } };
  let page = (await rpc(service, 'files/search_v2', argument, { token })).json as Found;
  const found = [...page.matches];
  // A deletion between two pages must not shift matches from one page to another.
  const path = found[0]?.metadata.metadata.path_lower;
  expect((await rpc(service, 'files/delete_v2', { path }, { token })).status).toBe(200);
  while (page.has_more) {
    const next = await rpc(service, 'files/search/continue_v2', { cursor: page.cursor }, { token });
    page = next.json as Found;
    found.push(...page.matches);
  }
  expect(page.cursor).toBeUndefined();
  expect(new Set(found.map(({ metadata }) => metadata.metadata.name)).size).toBe(2500);
  expect(found.length).toBe(2500);
});

async function otherToken(): Promise<string> {
  const account = await service.service.addAccount({
    email: 'many@example.org',
    givenName: 'M',
    surname: 'N',
    mayDeletePermanently: false,
  });
  const scopes = ['files.metadata.read', 'files.content.write'] as const;
  return service.service.grant({ accountId: account.id, scopes });
}

test('files/search_v2 and continue_v2 refuse invalid arguments', async () => {
  expect(refusalIn(await search({ query: ' ' }))).toEqual(
    refusal(409, 'invalid_argument', {
      '.tag': 'invalid_argument',
      invalid_argument: 'query must not be empty',
    }),
  );
  const lookup = (tag: string) => refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } });
  expect(refusalIn(await search({ query: 'x', options: { path: '/a//b' } }))).toEqual(
    lookup('malformed_path'),
  );
  expect(refusalIn(await search({ query: 'x', options: { path: '/song.mp3' } }))).toEqual(
    lookup('not_folder'),
  );
  for (const argument of [
    {},
    { query: 'x'.repeat(1001) },
    { query: 'x', options: { max_results: 1001 } },
    { query: 'x', options: { file_categories: ['none'] } },
    { query: 'x', options: { path: 'x' } },
  ])
    expect((await search(argument)).status).toBe(400);
  for (const cursor of ['rubbish', Buffer.from('{"start":0}').toString('base64url'), '']) {
    const answered = await rpc(service, 'files/search/continue_v2', { cursor });
    expect(answered.status).toBe(400);
  }
});
