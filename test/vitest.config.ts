import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { settleEnvironment } from './support/environment.ts';

// Here, because the processes that run the tests inherit this one's environment.
settleEnvironment();

/** Real mounts, 300 MiB files and a busy machine need minutes, not vitest's five seconds: the limits end what hangs. */
const patient = { testTimeout: 600_000, hookTimeout: 600_000 };

/** Tests that replace a module or measure the memory of their process: each file has a process of its own. */
const ALONE = [
  'test/unit/drive/spool/spool-file.test.ts',
  'test/unit/http/credentials.test.ts',
  'test/service/abandoned-search.test.ts',
  'test/gateway/metadata-memory.test.ts',
  'test/faults/gateway-memory.test.ts',
];

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    ...patient,
    globalSetup: ['test/support/build.ts'],
    // Tests wait for sockets, disks and other programs: two cores are still idle for a quarter of the time with six workers.
    maxWorkers: availableParallelism() + 8,
    // Loading the modules anew for each file takes as much time as half of the tests do.
    isolate: false,
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts', 'test/architecture.test.ts'],
          exclude: ALONE,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: [
            'test/service/**/*.test.ts',
            'test/gateway/**/*.test.ts',
            'test/faults/**/*.test.ts',
            'test/docs/**/*.test.ts',
          ],
          exclude: ALONE,
        },
      },
      { extends: true, test: { name: 'alone', include: ALONE, isolate: true } },
      { extends: true, test: { name: 'clients', include: ['test/clients/**/*.test.ts'] } },
    ],
  },
});
