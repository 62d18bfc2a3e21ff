import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { SCOPES } from '../../../src/service/accounts/scopes.ts';
import { openPool } from '../../../src/service/postgres/connect.ts';
import { expectReliable } from '../../../src/service/postgres/requirements.ts';
import { type LogFields, silentLog } from '../../../src/util/log.ts';
import { eventually } from '../../support/eventually.ts';
import { createUser, newDatabaseAt } from '../../support/postgres.ts';
import { type PostgresForwarder, startPostgresForwarder } from '../../support/postgres-forwarder.ts';
import { PostgresServer } from '../../support/postgres-server.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { download, put, rpc } from '../../support/service-client.ts';
import { HOME } from '../storage/opened.ts';
import { openedShared } from '../storage/opened-shared.ts';
import { newBlockFolder } from './nodes.ts';

let primary: PostgresServer;
let standby: PostgresServer;
/** The address that services have, like that of a proxy. */
let forwarder: PostgresForwarder;

beforeAll(async () => {
  primary = await PostgresServer.withNewData();
  await primary.start();
  await createUser(primary);
  standby = await primary.newStandby();
  await standby.start();
  forwarder = await startPostgresForwarder(primary.port);
});
afterAll(async () => {
  await forwarder.close();
  await standby.close();
  await primary.close();
});

/** Resolves when the standby has what the primary has. */
async function standbyHasAll(): Promise<void> {
  const [row] = await primary.administer<{ end: string }>('SELECT pg_current_wal_flush_lsn() AS end');
  await eventually(async () => {
    const [found] = await standby.administer(
      `SELECT FROM pg_last_wal_replay_lsn() AS lsn WHERE lsn >= '${row?.end}'`,
    );
    expect(found).toBeDefined();
  });
}

/** Connects clients with the standby, which lacks all changes that `change` makes, for the time of `work`. */
async function withStaleStandby(change: () => Promise<void>, work: () => Promise<void>): Promise<void> {
  await standbyHasAll();
  await standby.administer('SELECT pg_wal_replay_pause()');
  try {
    await change();
    forwarder.switchTo(standby.port);
    await work();
  } finally {
    forwarder.switchTo(primary.port);
    await standby.administer('SELECT pg_wal_replay_resume()');
  }
}

async function newService(): Promise<TestService & { readonly metadata: string }> {
  const metadata = forwarder.through(await newDatabaseAt(primary.administratorUrl));
  const service = await startTestService({ metadata, blocks: { folder: await newBlockFolder() } });
  onTestFinished(() => service.close());
  return { ...service, metadata };
}

test('a service whose connections lead to a standby that is behind answers 503, and never that a file or a token is unknown', async () => {
  const service = await newService();
  await put(service, '/old', 'text');
  let later = service;
  const change = async () => {
    await put(service, '/new', 'text');
    const account = await service.service.addAccount({
      email: 'ann@example.org',
      givenName: 'Ann',
      surname: 'A',
      mayDeletePermanently: true,
    });
    later = { ...service, token: await service.service.grant({ accountId: account.id, scopes: SCOPES }) };
  };
  await withStaleStandby(change, async () => {
    const answers = await Promise.all([
      rpc(service, 'files/get_metadata', { path: '/new' }),
      download(service, '/new'),
      rpc(service, 'files/list_folder', { path: '' }),
      rpc(later, 'users/get_current_account', null),
    ]);
    for (const answer of answers) {
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('5');
    }
  });
  expect((await download(service, '/new')).text).toBe('text');
  expect((await rpc(later, 'users/get_current_account', null)).status).toBe(200);
});

test('a call of the storage waits while the address leads to a standby that is behind', async () => {
  const url = forwarder.through(await newDatabaseAt(primary.administratorUrl));
  const events: string[] = [];
  const pool = openPool(url, { ...silentLog, warn: (event) => events.push(event) });
  onTestFinished(() => pool.end());
  const place = { url, folder: await newBlockFolder() };
  const { storage } = await openedShared(place, {}, () => pool);
  let found: Promise<unknown> | undefined;
  const change = async () => {
    await storage.createFolder(HOME, '/new', false);
  };
  await withStaleStandby(change, async () => {
    found = storage.stat(HOME, '/new', false);
    found.catch(() => undefined);
    await eventually(() => expect(events).toContain('a server of the database is not used'));
  });
  expect(await found).toMatchObject({ kind: 'folder' });
});

test('a service whose database comes to answer before a commit is on disk answers 503', async () => {
  const service = await newService();
  const { pathname } = new URL(service.metadata);
  const call = () => rpc(service, 'users/get_current_account', null);
  const alter = async (change: string) => {
    await primary.administer(`ALTER DATABASE ${pathname.slice(1)} ${change}`);
    // New connections have the setting.
    forwarder.switchTo(primary.port);
  };
  await alter('SET synchronous_commit = off');
  await eventually(async () => expect((await call()).status).toBe(503));
  await alter('RESET synchronous_commit');
  await eventually(async () => expect((await call()).status).toBe(200));
});

test('a standby is refused at the start, and told in the log once', async () => {
  const metadata = await newDatabaseAt(primary.administratorUrl);
  await standbyHasAll();
  const url = new URL(metadata);
  url.port = String(standby.port);
  const events: (LogFields | undefined)[] = [];
  const pool = openPool(url.href, { ...silentLog, warn: (_event, fields) => events.push(fields) });
  onTestFinished(() => pool.end());
  for (let count = 0; count < 3; count++)
    await expect(expectReliable(pool)).rejects.toThrow(
      /^the PostgreSQL database test_\w+ at 127.0.0.1:\d+ is a standby, .*: give the address of its primary$/,
    );
  expect(events).toEqual([expect.objectContaining({ error: expect.stringContaining('is a standby') })]);
});
