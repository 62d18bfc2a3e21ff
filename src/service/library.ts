/** `import { startService } from 'davgate'`. */
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { cp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { systemClock } from '../util/clock.ts';
import { silentLog } from '../util/log.ts';
import { makeFolder } from '../util/make-folder.ts';
import type { startService as declared, EmbeddedService, StartOptions } from './library-types.ts';
import { startService as startServer } from './server.ts';

/** Linux's file system in memory. */
const MEMORY_FOLDER = '/dev/shm';

/** Containers often have 64 MiB there, which a test with large files would fill. */
const MEMORY_FREE_BYTES_MIN = 256 * 1024 * 1024;

/** A URL leaves out the default port. */
const HTTP_PORT = 80;

export const startService: typeof declared = async (options = {}) => {
  if (options.memory && options.directory !== undefined)
    throw new TypeError('startService: memory and directory exclude each other; leave one out');
  const place = await placeFor(options);
  try {
    return await serveFrom(place, options);
  } catch (error) {
    place.remove();
    throw error;
  }
};

/** A directory for the service's files, and whether this process may empty it. */
interface Place {
  readonly files: string;
  /** A copy of `files` as they were after the start; `undefined` for files that existed before. */
  readonly start: string | undefined;
  /** Removes what is temporary. */
  remove(): void;
}

async function placeFor({ directory, memory = false }: StartOptions): Promise<Place> {
  const temporary = mkdtempSync(join(memory ? await memoryFolder() : tmpdir(), 'davgate-service-'));
  const remove = () => {
    process.off('exit', remove);
    rmSync(temporary, { recursive: true, force: true, maxRetries: 3 });
  };
  // A test that fails may never call `close`.
  process.once('exit', remove);
  const start = join(temporary, 'start');
  if (directory === undefined) return { files: join(temporary, 'files'), start, remove };
  const files = resolve(directory);
  makeFolder(files);
  return { files, start: readdirSync(files).length === 0 ? start : undefined, remove };
}

async function memoryFolder(): Promise<string> {
  try {
    const { bavail, bsize } = await statfs(MEMORY_FOLDER);
    return bavail * bsize >= MEMORY_FREE_BYTES_MIN ? MEMORY_FOLDER : tmpdir();
  } catch {
    return tmpdir();
  }
}

async function serveFrom(place: Place, options: StartOptions): Promise<EmbeddedService> {
  const { host = '127.0.0.1', contentPort, faults = {}, log = silentLog } = options;
  const open = (port: number, content: number | undefined) =>
    startServer({
      dataDirectory: place.files,
      listen: { host, port },
      ...(content !== undefined && { contentListen: { host, port: content } }),
      clock: systemClock,
      log,
      faults,
    });
  if (place.start !== undefined) {
    const first = await open(0, undefined);
    await first.provision();
    // A database is copied whole only while nothing has it open.
    await first.close();
    cpSync(place.files, place.start, { recursive: true });
  }
  let running = await open(options.port ?? 0, contentPort);
  const { url, contentUrl } = running;
  const { token, refreshToken, appKey, appSecret } = await running.provision();
  return {
    ...{ url, contentUrl, token, refreshToken, appKey, appSecret },
    setFaults: (settings) => running.setFaults(settings),
    async reset() {
      if (place.start === undefined)
        throw new Error(`reset: ${place.files} had files at the start, and reset would remove them`);
      await running.close();
      for (const name of readdirSync(place.files))
        await rm(join(place.files, name), { recursive: true, force: true });
      await cp(place.start, place.files, { recursive: true });
      running = await open(portOf(url), contentPort === undefined ? undefined : portOf(contentUrl));
    },
    async close() {
      await running.close();
      place.remove();
    },
  };
}

/** Returns the port of an address of `startServer`, which always names it. */
function portOf(url: string): number {
  return Number(new URL(url).port) || HTTP_PORT;
}
