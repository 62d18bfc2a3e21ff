import { afterEach, beforeEach, expect, test } from 'vitest';
import { openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  folderMetadata,
  ok,
  refuse,
  tagged,
} from '../../support/scripted-service.ts';

let scripted: Scripted;

beforeEach(async () => {
  scripted = await openScripted({ root: '/Team', random: () => 0.9 });
});
afterEach(() => scripted.close());

const match = (metadata: unknown) => ({ metadata: { '.tag': 'metadata', metadata } });
const page = (matches: readonly unknown[], more: object = { has_more: false }): Answer =>
  ok({ matches, ...more });

test('a search asks for names below the root of the drive, and returns paths of the drive', async () => {
  const { service, remote } = scripted;
  service.on(
    'files/search_v2',
    page([
      match(tagged('file', fileMetadata('/Team/a/Plan.txt'))),
      match(tagged('folder', folderMetadata('/team/Plans'))),
    ]),
  );
  const { entries, cursor } = await remote.search('plan', undefined);
  expect(entries.map(({ kind, path }) => [kind, path])).toEqual([
    ['file', '/a/Plan.txt'],
    ['folder', '/Plans'],
  ]);
  expect(cursor).toBeUndefined();
  expect(service.callsOf('files/search_v2').map(({ arg }) => arg)).toEqual([
    {
      query: 'plan',
      options: {
        path: '/Team',
        max_results: 100,
        file_status: { '.tag': 'active' },
        filename_only: true,
      },
    },
  ]);
});

test('the page after another one is asked for with its cursor', async () => {
  const { service, remote } = scripted;
  service.on('files/search_v2', page([], { has_more: true, cursor: 'next' }));
  service.on('files/search/continue_v2', page([match(tagged('file', fileMetadata('/Team/b')))]));
  expect(await remote.search('b', undefined)).toEqual({ entries: [], cursor: 'next' });
  const { entries, cursor } = await remote.search('b', 'next');
  expect([entries.length, cursor]).toEqual([1, undefined]);
  expect(service.callsOf('files/search/continue_v2')[0]?.arg).toEqual({ cursor: 'next' });
});

test('matches that the drive cannot show are left out, and hide no others', async () => {
  scripted.service.on(
    'files/search_v2',
    page([
      { metadata: { '.tag': 'other' } },
      match(tagged('folder', { name: 'Not mounted', id: 'id:n' })),
      match(tagged('folder', folderMetadata('/Team'))),
      match(tagged('file', fileMetadata('/Elsewhere/x'))),
      match(tagged('deleted', { name: 'x', path_lower: '/team/x', path_display: '/Team/x' })),
      match({ '.tag': 'hologram', name: 'x', path_lower: '/team/x', path_display: '/Team/x' }),
      match(tagged('file', fileMetadata('/Team/shown'))),
    ]),
  );
  const { entries } = await scripted.remote.search('x', undefined);
  expect(entries.map(({ path }) => path)).toEqual(['/shown']);
});

test.each<[string, Answer, string]>([
  [
    'a query that it does not take',
    refuse({ '.tag': 'invalid_argument' }, 'invalid_argument'),
    'bad-request',
  ],
  ['an error of its own', refuse({ '.tag': 'internal_error' }, 'internal_error'), 'unavailable'],
  ['more pages but no cursor', page([], { has_more: true }), 'unavailable'],
])(
  'a search that the service answers with %s fails with the right failure',
  async (_what, answer, failure) => {
    const { service, clock, remote } = scripted;
    service.on('files/search_v2', answer);
    await expect(clock.during(remote.search('x', undefined))).rejects.toMatchObject({ failure });
  },
);
