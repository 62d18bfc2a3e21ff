import { randomBytes } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { type CheckProgress, checkService } from '../../../src/service/admin/check.ts';
import type { CheckedSharedService } from '../../../src/service/admin/shared-check.ts';
import { makeFolder } from '../../../src/util/make-folder.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { startPostgres, type TestPostgres } from '../../support/postgres.ts';
import { queried } from '../../support/postgres-server.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc, upload } from '../../support/service-client.ts';

/** Content of two blocks that are not in the database. */
const LARGE = pseudoRandomBytes(4 * 1024 * 1024 + 100_000, 1);
export const SECOND_BLOCK = LARGE.subarray(4 * 1024 * 1024);

/** Bytes of all contents. */
export const ALL_BYTES =
  LARGE.length + 'an earlier text'.length + 'small'.length + 'deleted text'.length + 70_000;

/** The data of a service with some files. */
export interface Checked {
  readonly email: string;
  readonly metadata: string;
  readonly folder: string;
  /** Changes the database. */
  readonly sql: (statement: string) => Promise<void>;
  /** Runs a statement as the administrator of the server. */
  readonly administer: (statement: string) => Promise<void>;
  /** Starts a service, which is closed after the test. */
  start(): Promise<TestService>;
}

/** Returns the lines of a check. */
export async function found(
  checked: CheckedSharedService,
  onProgress: (progress: CheckProgress) => void = () => {},
): Promise<string[]> {
  const lines: string[] = [];
  for await (const { text } of checkService(checked, onProgress)) lines.push(text);
  return lines;
}

/** Returns the lines of a check of a shared folder. */
export function foundIn({ metadata, folder }: Checked, options: Partial<CheckedSharedService> = {}) {
  return found({ metadata, blocks: { folder }, ...options });
}

/** An empty database. */
type Empty = Pick<Checked, 'metadata' | 'sql'>;

/**
 * Starts a PostgreSQL for the tests of a file. Returns what copies the data of a service that has been closed, and what
 * makes a database without any.
 */
export function sharedChecks(): (() => Promise<Checked>) & { readonly withoutService: () => Promise<Empty> } {
  let postgres: TestPostgres;
  let original: { readonly metadata: string; readonly folder: string; readonly email: string };
  beforeAll(async () => {
    postgres = await startPostgres();
    const folder = join(await mkdtemp(join(tmpdir(), 'davgate-check-')), 'blocks');
    makeFolder(folder);
    const metadata = await postgres.newDatabase();
    const service = await startTestService({ metadata, blocks: { folder } });
    await fill(service);
    const { json } = await rpc(service, 'users/get_current_account', null);
    await service.close();
    original = { metadata, folder, email: (json as { email: string }).email };
  });
  afterAll(async () => {
    await postgres.close();
    await rm(join(original.folder, '..'), { recursive: true });
  });
  const copy = async (): Promise<Checked> => {
    const name = `copy_${randomBytes(6).toString('hex')}`;
    const url = new URL(original.metadata);
    await postgres.administer(
      `CREATE DATABASE ${name} OWNER ${url.username} TEMPLATE ${url.pathname.slice(1)}`,
    );
    url.pathname = name;
    const metadata = url.href;
    const home = await mkdtemp(join(tmpdir(), 'davgate-check-'));
    onTestFinished(() => rm(home, { recursive: true, force: true }));
    const folder = join(home, 'blocks');
    await cp(original.folder, folder, { recursive: true });
    return {
      ...{ metadata, folder, email: original.email },
      sql: changing(metadata),
      administer: (statement) => postgres.administer(statement),
      async start() {
        const service = await startTestService({ metadata, blocks: { folder } });
        onTestFinished(() => service.close());
        return service;
      },
    };
  };
  return Object.assign(copy, {
    async withoutService() {
      const metadata = await postgres.newDatabase();
      return { metadata, sql: changing(metadata) };
    },
  });
}

function changing(metadata: string): (statement: string) => Promise<void> {
  return async (statement) => {
    await queried(metadata, statement);
  };
}

/** Uploads files of all kinds: with history, in the database and not, deleted and unfinished. */
async function fill(service: TestService): Promise<void> {
  await put(service, '/photos/Large.jpg', 'an earlier text');
  await put(service, '/photos/Large.jpg', LARGE);
  await put(service, '/small.txt', 'small');
  await put(service, '/deleted.txt', 'deleted text');
  await rpc(service, 'files/delete_v2', { path: '/deleted.txt' });
  await upload(service, 'files/upload_session/start', {}, { body: pseudoRandomBytes(70_000, 2) });
}
