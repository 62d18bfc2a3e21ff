import { afterEach, expect, test } from 'vitest';
import type { LoginAccount } from '../../../src/api/account-check.ts';
import { ApiError } from '../../../src/api/errors.ts';
import { bodyOf } from '../../support/bytes.ts';
import { at, openScripted, type Scripted, TOKEN } from '../../support/scripted-remote.ts';
import { type Answer, fileMetadata, json, lose, ok, tagged, text } from '../../support/scripted-service.ts';

const WHOSE = 'users/get_current_account';
const UPLOAD = 'files/upload';
const STAT = 'files/get_metadata';
const ACCOUNT = { account_id: 'dbid:1', email: 'ann@example.org', name: { display_name: 'Ann' } };
const ANN = { id: 'dbid:1', displayName: 'Ann', email: 'ann@example.org' };
const noScope = json(401, {
  error_summary: 'missing_scope/',
  error: { '.tag': 'missing_scope', required_scope: 'account_info.read' },
});

let scripted: Scripted;
let accounts: LoginAccount[];
afterEach(() => scripted.close());

async function open(admit: () => Promise<void>, ...answers: Answer[]) {
  accounts = [];
  scripted = await openScripted({
    admit: async (whose) => {
      accounts.push(whose);
      await admit();
    },
  });
  scripted.service.on(STAT, ok(tagged('file', fileMetadata('/f')))).on(WHOSE, ...answers);
  return scripted;
}

test('the first calls wait until the account is admitted, which is asked for once', async () => {
  let admit = () => {};
  const admitted = new Promise<void>((resolve) => {
    admit = resolve;
  });
  const { remote, service } = await open(() => admitted, ok(ACCOUNT));
  const stats = Promise.all([remote.stat(at('/f')), remote.stat(at('/g'))]);
  while (accounts.length === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(service.routes).toEqual([WHOSE]);
  expect(service.calls[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`);
  admit();
  await stats;
  await remote.stat(at('/f'));
  expect(accounts).toEqual([ANN]);
  expect(service.routes).toEqual([WHOSE, STAT, STAT, STAT]);
});

test('after a refusal no call is made, and nobody is asked again', async () => {
  const refusal = new ApiError('unauthorized', 'another account');
  const { remote, service } = await open(() => Promise.reject(refusal), ok(ACCOUNT));
  const upload = () => remote.write(at('/f'), bodyOf('abc'), { mode: { if: 'any' } });
  await expect(upload()).rejects.toBe(refusal);
  await expect(upload()).rejects.toBe(refusal);
  await expect(remote.stat(at('/f'))).rejects.toBe(refusal);
  expect(service.routes).toEqual([WHOSE]);
});

test.each<[string, Answer]>([
  ['500', text(500, '')],
  ['a lost connection', lose],
  ['nonsense', text(200, '<html>')],
])('a service that does not answer is asked again: %s', async (_what, trouble) => {
  const { remote, service } = await open(async () => {}, trouble, ok(ACCOUNT));
  service.on(UPLOAD, ok(fileMetadata('/f', { size: 0, content_hash: undefined })));
  await remote.write(at('/f'), bodyOf(''), { mode: { if: 'absent' } });
  // The upload itself never went out: there is nothing to look for.
  expect(service.routes).toEqual([WHOSE, WHOSE, UPLOAD]);
  expect(accounts).toEqual([ANN]);
});

test('a token that is refused is no answer', async () => {
  const expired = json(401, { error_summary: 'x/', error: { '.tag': 'expired_access_token' } });
  const { remote } = await open(async () => {}, expired);
  await expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'unauthorized' });
  expect(accounts).toEqual([]);
});

test('a login without the scope does not tell', async () => {
  const { remote } = await open(async () => {}, noScope);
  await remote.stat(at('/f'));
  expect(accounts).toEqual(['unreadable']);
});
