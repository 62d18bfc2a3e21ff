import { randomBytes } from 'node:crypto';
import { open, readdir, readFile, rm, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../util/make-folder.ts';
import { gigabytes, type Report } from './report.ts';

/** Below this the next upload may not fit, in bytes. */
const FREE_BYTES_MIN = 1e9;

/** Permission bits of group and others, who should have none. */
const OTHERS = 0o077;

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there; check its owner and permissions',
  EPERM: 'this user may not write there; check its owner and permissions',
  EROFS: 'the file system is mounted read-only',
  ENOSPC: 'the disk is full; free some space',
  EDQUOT: 'this user’s disk quota is used up; free some space',
  ENOTDIR: 'part of the path is a file',
  EEXIST: 'a file has that name; remove or rename it',
};

interface DiskDeps {
  readonly report: Report;
  readonly about: string;
  /** The setting for its path. */
  readonly flag: string;
  /** Whether other users should not read it. */
  readonly isPrivate: boolean;
}

/** Makes a directory, writes and reads a file in it, and checks its free space. Returns whether it can be used. */
export async function checkDirectory(directory: string, deps: DiskDeps): Promise<boolean> {
  const { report, about, flag, isPrivate } = deps;
  try {
    makeFolder(directory);
    await tryFile(join(directory, `.davgate-doctor-${randomBytes(6).toString('hex')}`));
    const { bavail, bsize } = await statfs(directory);
    const { mode } = await stat(directory);
    const free = `${directory} is writable and has ${gigabytes(bavail * bsize)} free`;
    if (bavail * bsize < FREE_BYTES_MIN)
      report.warn(about, `${free}, which may soon be too little; free some space, or use ${flag}`);
    else if (isPrivate && (mode & OTHERS) !== 0)
      report.warn(about, `${free}, but other users of this machine can read it: chmod 700 ${directory}`);
    else report.ok(about, free);
    return true;
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException; // the file system's own errors
    report.fail(
      about,
      `${directory}: ${REASONS[code] ?? `the system says ${code || error}`}, or use ${flag}`,
    );
    return false;
  }
}

/** Writes a file and reads it back, because a faulty disk may accept every write. */
async function tryFile(file: string): Promise<void> {
  const text = randomBytes(64).toString('hex');
  try {
    const handle = await open(file, 'wx', 0o600);
    try {
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
    if ((await readFile(file, 'utf8')) !== text)
      throw new Error('a file does not contain what was written to it');
  } finally {
    await rm(file, { force: true });
  }
}

/** Warns if other users may read the secret. */
export async function checkSecretFile(file: string, report: Report): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found && (found.mode & OTHERS) !== 0)
    report.warn('login file', `other users of this machine can read ${file}: chmod 600 ${file}`);
}

/** Warns of lost writes, which the service refused for good. */
export async function checkLostAndFound(directory: string, report: Report): Promise<void> {
  const names = await readdir(directory, { recursive: true }).catch(() => []);
  const count = names.filter((name) => name.endsWith('.reason.txt')).length;
  if (count > 0)
    report.warn(
      'lost and found',
      `${count} writes that the service refused are in ${directory}, each with its reason: move them to where they belong`,
    );
}
