import { existsSync, mkdirSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Variables of the caller that would change what davgate or a foreign program does. */
const FOREIGN = /^(DAVGATE_|LC_|XDG_)|^LANGUAGE$|_proxy$/i;

/** Variables that programs need. Chromium has no UTF-8 file names without a locale. */
const SET = {
  // The caller's own configuration file of davgate would be read.
  XDG_CONFIG_HOME: join(tmpdir(), 'davgate-no-configuration'),
  LANG: 'C.UTF-8',
  LC_ALL: 'C.UTF-8',
  TZ: 'UTC',
  SHELL: '/bin/sh',
  TERM: 'xterm',
};

/** Sets the same environment on every machine, for this process, its tests and the programs they start. */
export function settleEnvironment(): void {
  for (const name of Object.keys(process.env)) if (FOREIGN.test(name)) delete process.env[name];
  Object.assign(process.env, SET);
  useMemory();
}

/** Linux's file system in memory. A run makes a million SQLite commits, and here none of them waits for a disk. */
const MEMORY = '/dev/shm';

/** Free memory, in bytes, with which the files of a run leave enough for everything else. */
const FREE_BYTES_MIN = 10 * 1024 ** 3;

/** Removes a folder with all in it, also when another process removes or adds files meanwhile. */
const REMOVAL = { recursive: true, force: true, maxRetries: 10 } as const;

/** Puts the temporary files of this process and all below it into memory, if there is plenty. */
function useMemory(): void {
  if (!existsSync(MEMORY)) return;
  for (const name of readdirSync(MEMORY)) {
    const [, pid] = /^davgate-(\d+)$/.exec(name) ?? [];
    // A run that was killed has left its folder, which another run may be removing too.
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(MEMORY, name), REMOVAL);
  }
  const { bavail, bsize } = statfsSync(MEMORY);
  if (Math.min(bavail * bsize, freemem()) < FREE_BYTES_MIN) return;
  const folder = memoryFolder();
  mkdirSync(folder, { recursive: true });
  process.env['TMPDIR'] = folder;
}

function memoryFolder(): string {
  return join(MEMORY, `davgate-${process.pid}`);
}

/** Removes what the tests have left in memory. */
export function clearMemory(): void {
  rmSync(memoryFolder(), REMOVAL);
}
