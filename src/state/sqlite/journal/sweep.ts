import { existsSync } from 'node:fs';
import { readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../../util/log.ts';
import { makeFolder } from '../../../util/make-folder.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { DirectorySync } from '../../directory-sync.ts';
import { isStagedName, stagedNameOf } from './bodies.ts';
import { folderName } from './folder-name.ts';
import { LostAndFound } from './lost-and-found.ts';

export interface SweepDeps {
  readonly database: SqliteDatabase;
  /** Whether the database was created at this start. */
  readonly isNew: boolean;
  /** Directory with a folder of bodies for each drive. */
  readonly bodies: string;
  /** Directory with a folder of lost files for each drive. */
  readonly lostAndFound: string;
  readonly log: Log;
}

/** Folder of bodies whose drive is unknown. No drive's own folder has a dot in its name. */
const UNKNOWN_DRIVE = 'unknown.drive';

interface BodyRow {
  readonly drive: string;
  readonly file: string;
}

/**
 * Tidies up the bodies of the last run. Removes those of writes that have been sent, and incomplete uploads. A body
 * without a record was acknowledged, and its record is lost, so it is moved to the lost-and-found folder: only a record
 * can prove that a body is no longer needed.
 */
export async function sweepBodies(deps: SweepDeps): Promise<void> {
  const { database, bodies } = deps;
  if (!existsSync(bodies)) return;
  const rowsOf = (query: string) => database.prepare<[], BodyRow>(query).all();
  const named = rowsOf('SELECT drive, body_file AS file FROM writes WHERE body_file IS NOT NULL');
  for (const { drive, file } of rowsOf('SELECT drive, file FROM dropped_bodies'))
    for (const name of [file, stagedNameOf(file)])
      await rm(join(bodies, folderName(drive), name), { force: true });
  await placeInDriveFolders(bodies, named);
  const filesOf = new Map<string, Set<string>>();
  for (const { drive, file } of named)
    filesOf.set(folderName(drive), (filesOf.get(folderName(drive)) ?? new Set()).add(file));
  const entries = await readdir(bodies, { withFileTypes: true });
  const loose = entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  await sweepFolder(deps, '', { files: loose, named: new Set() });
  for (const { name } of entries.filter((entry) => entry.isDirectory()))
    await sweepFolder(deps, name, {
      files: await readdir(join(bodies, name)),
      named: filesOf.get(name) ?? new Set(),
    });
  database.exec('DELETE FROM dropped_bodies');
}

/** Moves the bodies of older versions, which kept all drives in one folder, to the drives' folders. */
async function placeInDriveFolders(bodies: string, named: readonly BodyRow[]): Promise<void> {
  for (const { drive, file } of named.filter((row) => existsSync(join(bodies, row.file)))) {
    const folder = join(bodies, folderName(drive));
    makeFolder(folder);
    await rename(join(bodies, file), join(folder, file));
    await new DirectorySync(folder).run();
  }
}

async function sweepFolder(
  { bodies, lostAndFound, isNew, log }: SweepDeps,
  folder: string,
  { files, named }: { readonly files: readonly string[]; readonly named: ReadonlySet<string> },
): Promise<void> {
  const isThere = new Set(files);
  // Bodies recorded before a kill, but not renamed to their lasting name.
  const unsettled = new Map(
    [...named].filter((file) => !isThere.has(file)).map((file) => [stagedNameOf(file), file]),
  );
  const orphans: string[] = [];
  for (const file of files.filter((name) => !named.has(name))) {
    const lasting = unsettled.get(file);
    // If that fails, the journal finds the body under its staged name.
    if (lasting !== undefined)
      await rename(join(bodies, folder, file), join(bodies, folder, lasting)).catch(() => {});
    // When the database was lost in a power failure, a staged body may have been recorded.
    else if (isStagedName(file) && !isNew) await rm(join(bodies, folder, file), { force: true });
    else orphans.push(file);
  }
  if (orphans.length === 0) return;
  const keptIn = join(lostAndFound, folder || UNKNOWN_DRIVE);
  const lost = await LostAndFound.open(keptIn);
  for (const file of orphans) {
    await lost.keepOrphan(join(bodies, folder, file), file);
    await rm(join(bodies, folder, file));
  }
  log.error(
    'writes that were acknowledged have no record in the journal: their bytes are in the lost-and-found folder',
    { files: orphans.length, keptIn },
  );
}
