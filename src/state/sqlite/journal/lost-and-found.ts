import { createReadStream } from 'node:fs';
import { copyFile, link, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { errorCodeOf } from '../../../util/error-code.ts';
import { makeFolder } from '../../../util/make-folder.ts';
import { nameOf } from '../../../util/path.ts';
import { DirectorySync } from '../../directory-sync.ts';
import type { LostWrite, PendingWrite } from '../../journal.ts';

const REASON_SUFFIX = '.reason.txt';
const UNFINISHED_SUFFIX = '.unfinished';

/** Suffixes of files beside a lost file that are no lost files. */
const SUFFIXES = [REASON_SUFFIX, UNFINISHED_SUFFIX];

/** Bytes kept of the file's own name, so that the complete name is valid on every file system. */
const NAME_BYTES_MAX = 120;

/** The body of a lost write: in memory or in a file on the same disk. */
export type LostBody = { readonly bytes: Buffer } | { readonly file: string };

/**
 * The folder for writes that the service finally refused. Beside each file, another one describes the write and the
 * reason.
 */
export class LostAndFound {
  readonly #sync: DirectorySync;
  readonly #known: Set<string>;

  private constructor(
    private readonly directory: string,
    known: readonly string[],
  ) {
    this.#sync = new DirectorySync(directory);
    this.#known = new Set(known);
  }

  static async open(directory: string): Promise<LostAndFound> {
    makeFolder(directory);
    const names = await readdir(directory);
    return new LostAndFound(
      directory,
      names.filter((name) => name.endsWith(REASON_SUFFIX)),
    );
  }

  /** Number of files at the start and added since. */
  get count(): number {
    return this.#known.size;
  }

  /**
   * Stores a lost write; without a body only the reason. Resolves with the file's path when everything is on disk. A
   * repeated call makes the same file.
   */
  async keep(
    drive: string,
    write: PendingWrite,
    body: LostBody | undefined,
    reason: string,
  ): Promise<string> {
    return this.#keep(nameFor(write, SHORT_ID_LENGTH), body, reportOf(drive, write, body, reason));
  }

  /** Stores the body in `file`, which has no record, under the name `name`. Resolves with its path. */
  keepOrphan(file: string, name: string): Promise<string> {
    return this.#keep(name, { file }, orphanReportOf(name));
  }

  async list(): Promise<readonly LostWrite[]> {
    const names = (await readdir(this.directory)).filter(
      (name) => !SUFFIXES.some((one) => name.endsWith(one)),
    );
    const lost = await Promise.all(names.sort().map((name) => this.#describe(name)));
    return lost.filter((write) => write !== undefined);
  }

  async *read(name: string): AsyncIterable<Uint8Array> {
    for await (const piece of createReadStream(this.#pathOf(name))) yield piece;
  }

  async drop(name: string): Promise<void> {
    await rm(this.#pathOf(name), { force: true });
    await rm(`${this.#pathOf(name)}${REASON_SUFFIX}`, { force: true });
    this.#known.delete(`${name}${REASON_SUFFIX}`);
    await this.#sync.run();
  }

  /** Describes a file. Users may have put anything there, and may remove files meanwhile. */
  async #describe(name: string): Promise<LostWrite | undefined> {
    const found = await stat(join(this.directory, name)).catch(() => undefined);
    if (!found?.isFile()) return undefined;
    const report = await readFile(join(this.directory, `${name}${REASON_SUFFIX}`), 'utf8').catch(() => '');
    const fact = (about: string) => new RegExp(`^${about}: +(.*)$`, 'm').exec(report)?.[1];
    const writtenMs = Date.parse(fact('written') ?? timeIn(name));
    return {
      name,
      path: fact('path'),
      sizeBytes: found.size,
      writtenMs: Number.isNaN(writtenMs) ? undefined : writtenMs,
      reason: fact('reason'),
    };
  }

  /** Returns the path of a file in this folder. Throws for an invalid name. */
  #pathOf(name: string): string {
    if (name !== basename(name) || name === '..') throw new Error(`${name} is not the name of a lost file`);
    return join(this.directory, name);
  }

  async #keep(name: string, body: LostBody | undefined, report: string): Promise<string> {
    const path = join(this.directory, name);
    if (body) await ('bytes' in body ? this.#store(path, body.bytes) : adopt(body.file, path));
    await this.#store(`${path}${REASON_SUFFIX}`, Buffer.from(report));
    await this.#sync.run();
    this.#known.add(`${name}${REASON_SUFFIX}`);
    return path;
  }

  /** Writes a file completely or not at all, even if the process is killed meanwhile. */
  async #store(path: string, bytes: Buffer): Promise<void> {
    const unfinished = `${path}${UNFINISHED_SUFFIX}`;
    try {
      const handle = await open(unfinished, 'w', 0o600);
      try {
        await handle.writeFile(bytes);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(unfinished, path);
    } catch (error) {
      await rm(unfinished, { force: true });
      throw error;
    }
  }
}

/** Gives a file a second name, a hard link, which needs no space on a full disk. Its bytes are on disk already. */
async function adopt(file: string, path: string): Promise<void> {
  await rm(path, { force: true });
  try {
    await link(file, path);
  } catch (error) {
    // Some file systems have no hard links.
    const code = errorCodeOf(error);
    // A user has removed the file: only the reason is kept.
    if (code === 'ENOENT') return;
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'EXDEV') throw error;
    await copyFile(file, path);
    const handle = await open(path, 'r');
    await handle.sync().finally(() => handle.close());
  }
}

/** Characters that FAT, exFAT or NTFS refuses in a name, and those that they remove from its end. */
const REFUSED = /[\p{Cc}"*:<>?\\|]|[. ]$/gu;

/** An ending by which a lost file would be taken for a file beside one. */
const OWN_ENDING = /(?:\.reason\.txt|\.unfinished)$/;

/** Characters of a write's id in the name of a lost file. */
const SHORT_ID_LENGTH = 8;

/**
 * Returns a name such as `20260102T030405Z-1a2b3c4d-report.odt`: the time of the write, its id, and its file's name.
 * There `_` stands for each character that some disks refuse.
 */
export function nameFor({ acceptedMs, id, path }: PendingWrite, idLength?: number): string {
  const stamp = new Date(acceptedMs).toISOString().replace(/[-:]|\.\d+/g, '');
  // The end of the name, which has the extension, without a character that was cut in two.
  const tail = Buffer.from(nameOf(path))
    .subarray(-NAME_BYTES_MAX)
    .toString()
    .replace(/^\ufffd+/, '')
    .replace(REFUSED, '_')
    .replace(OWN_ENDING, '$&_');
  return `${stamp}-${id.slice(0, idLength)}-${tail}`;
}

/** Returns the time at the start of a name from `nameFor`, in a form for `Date.parse`. */
function timeIn(name: string): string {
  return name.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z-.*$/s, '$1-$2-$3T$4:$5:$6Z');
}

function orphanReportOf(name: string): string {
  return [
    'At its start davgate found these bytes in its journal without a record of their write: the database of the',
    'journal was replaced, restored from a backup, or damaged. The write was acknowledged to a client, and its bytes',
    'may not be at the storage service. They are in the file with the name of this one without ".reason.txt".',
    '',
    'reason: the journal has no record of this write',
    `file:   ${name} (the time and the id of the write, and the end of the file's name)`,
    '',
    'When the file is where it should be, delete both.',
    '',
  ].join('\n');
}

function reportOf(drive: string, write: PendingWrite, body: LostBody | undefined, reason: string): string {
  return [
    body
      ? `A write that davgate had acknowledged was refused by the storage service; its bytes are in the file with\nthe name of this one without ".reason.txt".`
      : 'A write that davgate had acknowledged could not be read from the journal, and there is no file with its bytes.',
    '',
    `reason:       ${reason}`,
    `path:         ${write.path}`,
    `drive:        ${drive}`,
    `written:      ${new Date(write.acceptedMs).toISOString()}`,
    `modified:     ${new Date(write.modifiedMs).toISOString()}`,
    `bytes:        ${write.sizeBytes}`,
    `content hash: ${write.contentHash}`,
    '',
    'When the file is where it should be, delete both.',
    '',
  ].join('\n');
}
