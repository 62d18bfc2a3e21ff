import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inRoot } from '../../src/service/accounts/accounts.ts';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import type { Directory } from '../../src/service/directory/directory.ts';
import { openSqliteDirectory } from '../../src/service/directory/sqlite/sqlite-directory.ts';
import { Faults } from '../../src/service/faults/faults.ts';
import { jobsOf } from '../../src/service/jobs/jobs.ts';
import { linkPasswords } from '../../src/service/links/password.ts';
import { startListener } from '../../src/service/listener.ts';
import { Previews } from '../../src/service/previews/previews.ts';
import { createRouter } from '../../src/service/router.ts';
import { WebFiles } from '../../src/service/save-url/web-files.ts';
import { searchesOf } from '../../src/service/search/searches.ts';
import type { Storage } from '../../src/service/storage/storage.ts';
import { systemClock } from '../../src/util/clock.ts';
import { type Log, silentLog } from '../../src/util/log.ts';
import { unhurried } from './unhurried.ts';

/** The namespace of the only account of `serviceOver`. */
export const NAMESPACE = '1';

/** The service's functions over a storage of the test's own. */
export interface ServiceOver {
  readonly url: string;
  /** A token of its only account. */
  readonly token: string;
  close(): Promise<void>;
}

/** Starts the service's listener over `storage`, with one account. `changed` may replace parts of its directory. */
export async function serviceOver(
  storage: Storage,
  log: Log = silentLog,
  changed: (directory: Directory) => Directory = (directory) => directory,
): Promise<ServiceOver> {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-service-over-'));
  const { directory, close } = openSqliteDirectory(folder);
  const { accounts, apps, tokens } = directory;
  const account = await accounts.add(
    { email: 'x@example.org', givenName: 'X', surname: 'Y', mayDeletePermanently: true, limitBytes: 0 },
    NAMESPACE,
  );
  const { app } = await apps.add({ name: 'X', status: 'production', scopes: SCOPES, redirectUris: [] });
  const token = await tokens.grantAccess(0, { accountId: account.id, appKey: app.key, scopes: SCOPES });
  const answer = createRouter(
    {
      storage,
      linkPasswords: linkPasswords({
        ...changed(directory),
        clock: systemClock,
        log: silentLog,
        closing: unhurried(),
      }),
      ...changed(directory),
      jobs: jobsOf({ ...changed(directory), clock: systemClock, log, closing: unhurried() }),
      previews: new Previews(systemClock),
      searches: searchesOf(),
      webFiles: new WebFiles(systemClock, log),
      clock: systemClock,
      freeBytes: async () => 0,
      withHome: async (account) => inRoot(account),
      makeTeamFolder: async () => undefined,
      webUrl: () => 'http://service',
      contentUrl: () => 'http://service',
      closing: new AbortController().signal,
    },
    new Faults({}, systemClock),
    log,
  );
  const listener = await startListener({
    listen: { host: '127.0.0.1', port: 0 },
    clock: systemClock,
    log,
    answer,
  });
  return {
    url: listener.url,
    token,
    async close() {
      await listener.close(unhurried());
      await close();
      await rm(folder, { recursive: true });
    },
  };
}
