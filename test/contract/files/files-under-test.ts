import { afterAll, beforeAll, expect } from 'vitest';
import type { Entry, FileEntry, Files, WriteMode, Written } from '../../../src/drive/files.ts';
import type { RequestState } from '../../../src/state/state.ts';
import type { Path } from '../../../src/util/path.ts';
import { joined } from '../../support/byte-source.ts';
import { path } from '../../support/paths.ts';

/** An empty drive. */
export interface OpenedFiles {
  readonly files: Files;
  readonly state: RequestState;
  close(): Promise<void>;
}

/** The drive under test, and helpers that its tests share. */
export interface FilesUnderTest {
  /** Available from the first `beforeAll` on, like `state`. */
  readonly files: Files;
  readonly state: RequestState;
  /** Creates a new, empty folder for one test. */
  newFolder(): Promise<Path>;
  put(at: Path, text: string, mode?: WriteMode): Promise<Written>;
  fileAt(at: Path): Promise<FileEntry>;
  textAt(at: Path): Promise<string>;
  namesIn(at: Path): Promise<string[]>;
  /** Sets a property on a file; with a journal the property follows the file to its final id. */
  mark(entry: Entry): Promise<void>;
  isMarked(entry: Entry): Promise<boolean>;
}

/** Opens a drive for all tests of the surrounding block. */
export function filesUnderTest(open: () => Promise<OpenedFiles>): FilesUnderTest {
  let opened: OpenedFiles;
  let folders = 0;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  const fileAt = async (at: Path): Promise<FileEntry> => {
    const entry = await opened.files.stat(at);
    if (entry?.kind !== 'file') throw new Error(`no file at ${at}`);
    expect([entry, undefined]).toContainEqual(opened.files.known(at));
    return entry;
  };
  return {
    get files() {
      return opened.files;
    },
    get state() {
      return opened.state;
    },
    async newFolder() {
      folders += 1;
      return (await opened.files.createFolder(path(`/Folder ${folders}`))).path;
    },
    put: (at, text, mode = ANY) =>
      opened.files.write(at, body(text), { mode, sizeBytes: Buffer.byteLength(text) }),
    fileAt,
    async textAt(at) {
      const { signal } = new AbortController();
      const file = await fileAt(at);
      const text = (await joined(opened.files.read(file, undefined, signal))).toString();
      const inMemory = opened.files.inMemory(file);
      if (inMemory) expect(Buffer.from(inMemory).toString()).toBe(text);
      return text;
    },
    namesIn: async (at) => (await opened.files.list(at)).children.map((child) => child.name).sort(),
    mark: ({ id }) =>
      opened.state.properties.change(id, [{ set: { namespace: 'n', name: 'mark', xml: '<mark/>' } }]),
    isMarked: async ({ id }) => (await opened.state.properties.of([id])).has(id),
  };
}

export const ANY = { if: 'any' } as const;
export const ABSENT = { if: 'absent' } as const;

export async function* body(...texts: string[]): AsyncIterable<Uint8Array> {
  for (const text of texts) yield Buffer.from(text);
}
