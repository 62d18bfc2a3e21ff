import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { effort, IS_LONG } from './support/effort.ts';
import { settleEnvironment } from './support/environment.ts';

// Called here, because the processes that run the tests inherit this environment.
settleEnvironment();

/** Time limits in ms, which only end tests that hang: real mounts and 300 MiB files take minutes on a busy machine. */
const TIME_LIMITS = { testTimeout: effort(600_000), hookTimeout: 600_000 };

/** Tests that replace a module or measure the memory of their process: each file has a process of its own. */
const ALONE = [
  'test/unit/dav/body-memory.test.ts',
  'test/unit/drive/content/no-threads.test.ts',
  'test/unit/drive/spool/spool-file.test.ts',
  'test/unit/http/credentials.test.ts',
  'test/unit/state/pieces/removed-uploads.test.ts',
  'test/service/abandoned-search.test.ts',
  'test/service/unread-downloads.test.ts',
  'test/gateway/metadata-memory.test.ts',
  'test/faults/gateway-memory.test.ts',
];

/** The tests of the service that run once more on PostgreSQL: those of its API. */
const ON_POSTGRES = [
  'test/service/*.test.ts',
  'test/service/{accounts,arguments,jobs,links,model,oauth,sdk,sessions}/**/*.test.ts',
];

/** Those among them that look into the data directory, are of a gateway's service, have none, or a PostgreSQL of their own. */
const NOT_ON_POSTGRES = [
  'test/service/{abandoned-search,bucket,check,connections,directory-postgres,housekeeping,postgres,save-url-network,service-copy*,several-services,unread-downloads,upgrade}.test.ts',
  'test/service/accounts/{account-removal,admin-commands,administration,drives,guesses}.test.ts',
  'test/service/jobs/results.test.ts',
  'test/service/links/temporary-links.test.ts',
  'test/service/oauth/{signed-in,tokens}.test.ts',
];

/** The tests that wait for other programs: fewer workers would leave processors idle. */
const WAITING = { maxWorkers: availableParallelism() + 6, sequence: { groupOrder: 1 } };

/** The tests that compute. Each worker compiles `src/` for itself, so that eight more cost a fifth more processor time. */
const COMPUTING = { maxWorkers: availableParallelism() + 2, sequence: { groupOrder: 2 } };

/** Tests that only `npm run test:long` runs. */
const LONG = IS_LONG ? ['test/long/**/*.test.ts'] : [];

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    ...TIME_LIMITS,
    globalSetup: ['test/support/build.ts'],
    // With isolation each file loads all modules again, which takes half as long as the tests.
    isolate: false,
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          ...COMPUTING,
          include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts', 'test/architecture.test.ts'],
          exclude: ALONE,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          ...COMPUTING,
          include: [
            'test/service/**/*.test.ts',
            'test/gateway/**/*.test.ts',
            'test/faults/**/*.test.ts',
            'test/docs/**/*.test.ts',
          ],
          exclude: ALONE,
        },
      },
      {
        extends: true,
        test: {
          name: 'postgres',
          ...COMPUTING,
          include: ON_POSTGRES,
          exclude: NOT_ON_POSTGRES,
          globalSetup: ['test/support/build.ts', 'test/support/postgres-setup.ts'],
        },
      },
      { extends: true, test: { name: 'alone', ...WAITING, include: ALONE, isolate: true } },
      {
        extends: true,
        test: { name: 'clients', ...WAITING, include: ['test/clients/**/*.test.ts', ...LONG] },
      },
    ],
  },
});
