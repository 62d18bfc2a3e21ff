import { isApiFailure } from '../../api/errors.ts';
import type { AroundCommit, Remote } from '../../api/remote.ts';
import type { Placeholder } from '../../state/placeholders.ts';
import type { DriveState } from '../../state/state.ts';
import type { Log } from '../../util/log.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import { FileError } from '../errors.ts';
import type { FileIds } from '../file-ids.ts';
import type { FileEntry } from '../files.ts';
import type { PathLocks } from '../path-locks.ts';

interface PlaceholderCommitterDeps {
  readonly remote: Pick<Remote, 'stat' | 'write'>;
  readonly state: Pick<DriveState, 'placeholders' | 'properties'>;
  readonly ids: FileIds;
  readonly metadata: MetadataCache;
  readonly locks: PathLocks;
  readonly log: Log;
}

/** Writes placeholders to the service as empty files. */
export class PlaceholderCommitter {
  constructor(private readonly deps: PlaceholderCommitterDeps) {}

  /**
   * Commits `placeholder` as an empty file. A file that the service already has there stays. Returns whether the
   * placeholder can be removed; `false` when it was moved or removed meanwhile.
   */
  async commit(placeholder: Placeholder): Promise<boolean> {
    const { remote, metadata, locks, log } = this.deps;
    const { path, modifiedMs } = placeholder;
    const aroundCommit: AroundCommit = (commit) =>
      locks.shared([path], async () => {
        if (!(await this.#isStillThere(placeholder)))
          throw new FileError('not-found', `the placeholder at ${path} was moved or removed`);
        return commit();
      });
    const change = metadata.begin([path]);
    let entry: FileEntry | undefined;
    try {
      const mode = { if: 'absent' } as const;
      entry = await remote.write(path, nothing(), { mode, sizeBytes: 0, modifiedMs, aroundCommit });
      await this.deps.ids.rename(placeholder.id, entry.id);
    } catch (error) {
      if (!(await this.#isStillThere(placeholder))) return false;
      if (isApiFailure(error, 'malformed-path', 'disallowed-name'))
        log.error('the storage service refuses the name of an empty file; the file is lost', { path });
      else if (isApiFailure(error, 'conflict-file', 'conflict-folder')) await this.#adoptFound(placeholder);
      else throw error;
    } finally {
      await change.end(entry ? [[path, entry]] : []);
    }
    return true;
  }

  async #isStillThere({ path, id }: Placeholder): Promise<boolean> {
    return (await this.deps.state.placeholders.get(path))?.id === id;
  }

  /**
   * The existing file may be this placeholder, committed before a kill, perhaps with its body. It gets the properties
   * that were acknowledged for the placeholder, unless it has properties of its own.
   */
  async #adoptFound(placeholder: Placeholder): Promise<void> {
    const { remote, state, ids } = this.deps;
    const found = await remote.stat(placeholder.path);
    const isBare = found?.kind === 'file' && (await state.properties.of([found.id])).size === 0;
    if (isBare) await ids.rename(placeholder.id, found.id);
    else await state.properties.forget([placeholder.id]);
  }
}

async function* nothing(): AsyncIterable<Uint8Array> {}
