import { keyOf, namesOf, type Path, ROOT } from '../../util/path.ts';
import { type LocalFile, type LocalFileStore, LocalFileTooLarge } from '../local-files.ts';
import { numberOf, textOrNothing, textsOf } from './answers.ts';
import type { DriveStore } from './drive-keys.ts';
import { COPY, FORGET, IN, MOVE, PUT, READ, REMOVED_MAX, TOUCH, WITHIN } from './local-files-scripts.ts';

/**
 * Maximum size of a local file, in bytes. Contents take the memory that locks and properties need, so that the limits are
 * lower than in SQLite; AppleDouble files without a large resource fork have a few kilobytes.
 */
const LOCAL_FILE_BYTES_MAX = 1024 * 1024;

/**
 * Maximum size of all local files of a drive, in bytes, each with its metadata. Beyond it the oldest are removed.
 */
export const LOCAL_FILES_BYTES_MAX = 64 * 1024 * 1024;

/**
 * Local files, with metadata and content apart, so that listings and moves read no content. `bytesMax`: maximum size of
 * all local files of the drive.
 */
export function redisLocalFiles({ connection, key }: DriveStore, bytesMax: number): LocalFileStore {
  const facts = key('asides');
  const keys = [
    ...[facts, key('aside-contents'), key('aside-places')],
    ...[key('aside-folders'), key('aside-ages'), key('aside-totals')],
  ];
  const limit = String(bytesMax);
  const run = (text: string, ...words: (string | Buffer)[]) => connection.script(text, keys, words);

  return {
    fileBytesMax: LOCAL_FILE_BYTES_MAX,
    async get(path) {
      const text = textOrNothing(await connection.command('HGET', facts, keyOf(path)));
      return text === undefined ? undefined : fileOf(text);
    },
    async read(path) {
      const answer = await connection.script(READ, keys, [keyOf(path)], 'bytes');
      return Buffer.isBuffer(answer) ? answer : undefined;
    },
    in: async (folder) => textsOf(await run(IN, keyOf(folder))).map(fileOf),
    async within(path, filesMax) {
      const words = filesMax === undefined ? [] : [String(filesMax)];
      return textsOf(await run(WITHIN, keyOf(path), ...words)).map(fileOf);
    },
    async put(file, content) {
      if (content.byteLength > LOCAL_FILE_BYTES_MAX)
        throw new LocalFileTooLarge(`a local file may have at most ${LOCAL_FILE_BYTES_MAX} bytes`);
      const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
      await run(PUT, limit, keyOf(file.path), textOf(file, content.byteLength), bytes);
    },
    async touch(path, modifiedMs) {
      await run(TOUCH, keyOf(path), String(modifiedMs));
    },
    async forget(path) {
      const ids: string[] = [];
      for (;;) {
        const gone = textsOf(await run(FORGET, keyOf(path)));
        for (const id of gone) ids.push(id);
        if (gone.length < REMOVED_MAX) return ids;
      }
    },
    async move(from, to) {
      await run(MOVE, ...wayOf(from, to), limit);
    },
    async copy(from, to, newId) {
      if (keyOf(from) === keyOf(to)) return;
      const ids: string[] = [];
      // Redis returns the required number of ids while it gets too few; meanwhile the number may grow.
      for (;;) {
        const wanted = numberOf(await run(COPY, ...wayOf(from, to), limit, ...ids));
        if (wanted <= ids.length) return;
        while (ids.length < wanted) ids.push(newId());
      }
    },
  };
}

/** Returns both keys, the new path, and the number of names in the old path. */
function wayOf(from: Path, to: Path): string[] {
  const stem = (text: string) => (text === ROOT ? '' : text);
  return [keyOf(from), keyOf(to), stem(to), String(namesOf(from).length)];
}

/** Returns metadata with numbers as strings: scripts rewrite the metadata, and Lua rounds numbers. */
function textOf({ path, id, rev, modifiedMs }: LocalFile, sizeBytes: number): string {
  return JSON.stringify({ path, id, rev, modifiedMs: String(modifiedMs), sizeBytes: String(sizeBytes) });
}

function fileOf(text: string): LocalFile {
  const { path, id, rev, modifiedMs, sizeBytes } = JSON.parse(text); // as `textOf` and the scripts wrote it
  return { path, id, rev, modifiedMs: Number(modifiedMs), sizeBytes: Number(sizeBytes) };
}
