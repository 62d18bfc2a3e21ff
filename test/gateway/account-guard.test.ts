import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Claim, claimDrive } from '../../src/app/account-guard.ts';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { OtherOwner } from '../../src/state/errors.ts';
import type { Journals } from '../../src/state/journal.ts';
import { openSqliteJournals } from '../../src/state/sqlite/journal/journals.ts';
import { openSqliteState } from '../../src/state/sqlite/state.ts';
import type { State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { accept, pendingWrite } from '../contract/journal.contract.ts';
import { relocation } from '../contract/replacements.contract.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let ann: string;
let bob: string;
beforeAll(async () => {
  service = await startTestService();
  const tokenOf = async (email: string) => {
    const { id } = await service.service.addAccount({
      email,
      givenName: 'A',
      surname: 'B',
      mayDeletePermanently: true,
    });
    return service.service.grant({ accountId: id, scopes: SCOPES });
  };
  ann = await tokenOf('ann@example.org');
  bob = await tokenOf('bob@example.org');
});
afterAll(() => service.close());

let directory: string;
let state: State;
let journals: Journals;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'davgate-owner-'));
  state = openSqliteState({ directory: join(directory, 'state') });
  journals = await openSqliteJournals(
    {
      journal: join(directory, 'journal'),
      lostAndFound: join(directory, 'lost'),
    },
    silentLog,
  );
});
afterEach(async () => {
  await state.close();
  await journals.close();
  rmSync(directory, { recursive: true });
});

function claim(token: string, more: Partial<Claim> = {}) {
  const { url } = service;
  const addresses = { apiUrl: url, contentUrl: url, notifyUrl: url };
  return claimDrive({
    drive: 'd',
    service: { ...addresses, credentials: { token }, root: '' },
    state,
    journals,
    dataDirectory: directory,
    clock: systemClock,
    log: silentLog,
    ...more,
  });
}

const body = Buffer.from('of Ann');

async function addPendingWrite(): Promise<void> {
  await accept(await journals.drive('d'), pendingWrite('w', body), body);
}

test('claimDrive refuses another account a drive with an unfinished move until the move is finished', async () => {
  await claim(ann);
  await state.drive('d').replacements.note(relocation('1'));
  await expect(claim(bob)).rejects.toThrow(OtherOwner);
  await claim(ann);
  await state.drive('d').replacements.remove('1');
  await claim(bob);
});

test('claimDrive refuses another account a journal with pending writes even when the state is in another directory', async () => {
  await claim(ann);
  await addPendingWrite();
  const elsewhere = openSqliteState({ directory: join(directory, 'elsewhere') });
  try {
    await expect(claim(bob, { state: elsewhere })).rejects.toThrow(/1 file in .* must still be sent to ann@/);
    await claim(ann, { state: elsewhere });
  } finally {
    await elsewhere.close();
  }
});

test('pending writes in a journal without an owner belong to the owner recorded in the state', async () => {
  await claim(ann, { journals: undefined });
  await addPendingWrite();
  await expect(claim(bob)).rejects.toThrow(/1 file in .* must still be sent to ann@/);
  await claim(ann);
  expect(await journals.owners.get('d')).toMatchObject({ email: 'ann@example.org' });
});

test('a refused claimDrive leaves the owners in state and journal unchanged', async () => {
  await claim(ann);
  await addPendingWrite();
  await expect(claim(bob)).rejects.toThrow(OtherOwner);
  expect(await state.owners.get('d')).toMatchObject({ email: 'ann@example.org' });
  expect(await journals.owners.get('d')).toMatchObject({ email: 'ann@example.org' });
});
