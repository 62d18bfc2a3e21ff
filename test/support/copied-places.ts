import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type CopyProgress, copyService } from '../../src/service/copy/copy-service.ts';
import type { ServicePlace } from '../../src/service/copy/sides.ts';
import type { TestPostgres } from './postgres.ts';
import { startTestService, type TestService } from './service.ts';

export async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'davgate-copy-test-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Returns a place for a service in an empty database, with its blocks in a folder. */
export async function newDatabasePlace(postgres: TestPostgres): Promise<ServicePlace> {
  return { metadata: await postgres.newDatabase(), blocks: { folder: await newFolder() } };
}

/** Starts a service on its data for the time of `work`. In a database it has a folder of its own beside. */
export async function atService<T>(
  place: ServicePlace,
  work: (service: TestService) => Promise<T>,
): Promise<T> {
  const { blocks, ...rest } = { dataDirectory: await newFolder(), ...place };
  const service = await startTestService({ ...rest, ...(blocks && { blocks }) });
  try {
    return await work(service);
  } finally {
    await service.close();
  }
}

export function copied(
  from: ServicePlace,
  to: ServicePlace,
  onProgress: (progress: CopyProgress) => void = () => undefined,
): Promise<CopyProgress> {
  return copyService({ from, to }, onProgress);
}
