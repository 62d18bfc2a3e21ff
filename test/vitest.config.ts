import { defineConfig } from 'vitest/config';

/** Real mounts, 300 MiB files and a busy machine need minutes, not vitest's five seconds: the limits end what hangs. */
const patient = { testTimeout: 600_000, hookTimeout: 600_000 };

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    ...patient,
    // Most tests wait for sockets and disks: a core is not kept back for the runner.
    maxWorkers: '100%',
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts', 'test/architecture.test.ts'],
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          globalSetup: ['test/support/build.ts'],
          include: [
            'test/service/**/*.test.ts',
            'test/gateway/**/*.test.ts',
            'test/faults/**/*.test.ts',
            'test/docs/**/*.test.ts',
          ],
        },
      },
      {
        extends: true,
        test: {
          name: 'clients',
          include: ['test/clients/**/*.test.ts'],
          globalSetup: ['test/support/build.ts'],
          // Mounts and 300 MiB transfers share two cores: side by side they only time each other out.
          fileParallelism: false,
        },
      },
    ],
  },
});
