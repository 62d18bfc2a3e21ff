import { afterEach, expect, test } from 'vitest';
import { bodyOf } from '../../support/bytes.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { fileMetadata, json, lose, ok, tagged } from '../../support/scripted-service.ts';

const WHOSE = 'users/get_current_account';
const STAT = 'files/get_metadata';
const ACCOUNT = {
  account_id: 'dbid:1',
  email: 'ann@example.org',
  name: { display_name: 'Ann' },
  root_info: { '.tag': 'team', root_namespace_id: '7', home_namespace_id: '8', home_path: '/Ann' },
};
/** The answer after the account was moved, with the summary of the service. */
const movedWith = (summary: string) =>
  json(422, {
    error_summary: summary,
    error: {
      '.tag': 'invalid_root',
      invalid_root: { '.tag': 'user', root_namespace_id: '9', home_namespace_id: '9' },
    },
  });
const FORBIDDEN = json(422, { error_summary: 'no_permission/..', error: { '.tag': 'no_permission' } });
const ROOT = '{".tag":"root","root":"7"}';

let scripted: Scripted;
afterEach(() => scripted.close());

async function open(namespace: string | undefined) {
  scripted = await openScripted({ namespace });
  const file = fileMetadata('/f');
  scripted.service
    .on(WHOSE, ok(ACCOUNT))
    .on(STAT, ok(tagged('file', file)))
    .on('files/upload', ok(file))
    .on('files/list_folder', ok({ entries: [], cursor: 'c1', has_more: true }))
    .on('files/list_folder/continue', ok({ entries: [], cursor: 'c2', has_more: false }))
    .on('files/list_folder/longpoll', ok({ changes: true }))
    .on('users/get_space_usage', ok({ used: 1, allocation: { '.tag': 'individual', allocated: 2 } }));
  return scripted;
}

/** Makes calls of each kind. Returns the path root of each function that was called. */
async function rootsOfCalls({ remote, service }: Scripted) {
  await remote.stat(at('/f'));
  for await (const _ of remote.list(at('/'), { recursive: true }));
  await remote.write(at('/f'), bodyOf('abc'), { mode: { if: 'any' } }).catch(() => undefined);
  await remote.quota();
  await remote.awaitChange('c2', 30_000);
  return new Map(service.calls.map(({ route, headers }) => [route, headers['dropbox-api-path-root']]));
}

test('the root of the account is asked for once and sent with every call that takes a path, but not with long polls', async () => {
  const roots = await rootsOfCalls(await open('root'));
  expect(Object.fromEntries(roots)).toEqual({
    [WHOSE]: undefined,
    [STAT]: ROOT,
    'files/list_folder': ROOT,
    'files/list_folder/continue': ROOT,
    'files/upload': ROOT,
    'users/get_space_usage': undefined,
    'files/list_folder/longpoll': undefined,
  });
  expect(scripted.service.callsOf(WHOSE)).toHaveLength(1);
});

test('a namespace given by its number is sent without asking for the account', async () => {
  const roots = await rootsOfCalls(await open('12345678901234567'));
  expect(roots.has(WHOSE)).toBe(false);
  expect(roots.get('files/upload')).toBe('{".tag":"namespace_id","namespace_id":"12345678901234567"}');
});

test.each([undefined, 'home'])('no path root is sent for the namespace %s', async (namespace) => {
  const roots = await rootsOfCalls(await open(namespace));
  expect(new Set(roots.values())).toEqual(new Set([undefined]));
  expect(roots.has(WHOSE)).toBe(false);
});

test.each(['invalid_root/..', 'invalid_root/user/.'])(
  'after a refusal with the summary %s every call fails as an outage and none is sent',
  async (summary) => {
    const { remote, service, log } = await open('root');
    await remote.stat(at('/f'));
    service.on(STAT, movedWith(summary));
    await expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'wrong-namespace' });
    service.on(STAT, ok(tagged('file', fileMetadata('/f'))));
    const calls = service.calls.length;
    await expect(remote.stat(at('/f'))).rejects.toMatchObject({
      failure: 'wrong-namespace',
      message: expect.stringMatching(/^the account was moved to another root; restart davgate/),
    });
    expect(service.calls).toHaveLength(calls);
    expect(log.lines.map(({ event }) => event)).toEqual([
      'the root of the account has changed; no calls are made',
    ]);
  },
);

test('a namespace that the account may use again after no_permission is used again', async () => {
  const { remote, service } = await open('12');
  service.on(STAT, FORBIDDEN, ok(tagged('file', fileMetadata('/f'))));
  await expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'wrong-namespace' });
  expect((await remote.stat(at('/f')))?.kind).toBe('file');
});

test('the root is asked for again after the service did not answer', async () => {
  const { remote, service } = await open('root');
  service.on(WHOSE, lose, ok(ACCOUNT));
  expect((await remote.stat(at('/f')))?.kind).toBe('file');
  expect(service.callsOf(STAT).map(({ headers }) => headers['dropbox-api-path-root'])).toEqual([ROOT]);
});

test('calls in the root of an account fail if the service names no root', async () => {
  const { remote, service } = await open('root');
  const { root_info: _, ...account } = ACCOUNT;
  service.on(WHOSE, ok(account));
  await expect(remote.stat(at('/f'))).rejects.toThrow(/give the app the scope account_info\.read/);
  expect(service.routes).toEqual([WHOSE]);
});
