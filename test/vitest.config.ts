import { defineConfig } from 'vitest/config';

/** Real mounts, 300 MiB files and process starts need minutes, not vitest's five seconds. */
const slow = { testTimeout: 600_000, hookTimeout: 600_000 };

export default defineConfig({
  test: {
    root: new URL('..', import.meta.url).pathname,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts', 'test/contract/**/*.test.ts', 'test/architecture.test.ts'],
          testTimeout: 30_000,
        },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/service/**/*.test.ts', 'test/gateway/**/*.test.ts', 'test/faults/**/*.test.ts'],
          ...slow,
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
          ...slow,
        },
      },
    ],
  },
});
