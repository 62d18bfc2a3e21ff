import type { TestProject } from 'vitest/node';
import { startPostgres, type TestPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** URL of the administrator of a PostgreSQL in which services have their metadata; absent where they use SQLite. */
    readonly postgres?: string;
  }
}

let postgres: TestPostgres | undefined;

/** Starts a PostgreSQL for all tests of the project. */
export async function setup(project: TestProject): Promise<void> {
  postgres = await startPostgres();
  project.provide('postgres', postgres.administratorUrl);
}

export async function teardown(): Promise<void> {
  await postgres?.close();
}
