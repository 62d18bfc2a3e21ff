import { afterAll, beforeAll } from 'vitest';
import type { Entry, Remote } from '../../../src/api/remote.ts';
import type { UploadCalls } from '../../../src/api/write/upload-calls.ts';
import type { Path } from '../../../src/util/path.ts';
import { path } from '../../support/paths.ts';

/** A `Remote` on an empty drive. */
export interface OpenedRemote {
  readonly remote: Remote;
  /** The calls below `write`, if the remote has them. */
  readonly uploads?: UploadCalls;
  close(): Promise<void>;
}

/** The remote under test. */
export interface RemoteUnderTest {
  /** Available from the first `beforeAll` on. */
  readonly remote: Remote;
  readonly uploads: UploadCalls;
  /** Creates a new, empty folder for one test. */
  newFolder(): Promise<string>;
}

/** Opens a remote for all tests of the surrounding block. */
export function remoteUnderTest(open: () => Promise<OpenedRemote>): RemoteUnderTest {
  let opened: OpenedRemote;
  let folders = 0;
  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());
  return {
    get remote() {
      return opened.remote;
    },
    get uploads() {
      if (!opened.uploads) throw new Error('this remote has no upload calls');
      return opened.uploads;
    },
    async newFolder() {
      folders += 1;
      await opened.remote.createFolder(path(`/Folder ${folders}`));
      return `/Folder ${folders}`;
    },
  };
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
export const ANY = { mode: { if: 'any' } } as const;
export const ABSENT = { mode: { if: 'absent' } } as const;

export function filled(sizeBytes: number, value: number): Uint8Array {
  return new Uint8Array(sizeBytes).fill(value);
}

export async function listed(remote: Remote, folder: Path, recursive: boolean): Promise<Entry[]> {
  const entries = new Map<string, Entry>();
  for await (const { changes } of remote.list(folder, { recursive })) {
    for (const change of changes) if (change.kind === 'put') entries.set(change.entry.path, change.entry);
  }
  return [...entries.values()].sort((one, other) => (one.path < other.path ? -1 : 1));
}
