import type { Path } from '../util/path.ts';
import type { DeadProperty } from './properties.ts';

/** The local data that a copied file or folder gets from its original. */
export interface Kept {
  /** Path of the copy. */
  readonly path: Path;
  readonly kind: 'file' | 'folder';
  /** For a file: the time belongs to this content only. */
  readonly contentHash?: string;
  readonly properties: readonly DeadProperty[];
  /** Modification time that a client has set. */
  readonly modifiedMs?: number;
}

/**
 * The local side of a move or copy. Recorded before the call to the service and removed when it is done, so that a kill
 * in between loses nothing.
 */
export interface Intent {
  readonly id: string;
  readonly kind: 'move' | 'copy';
  readonly from: Path;
  readonly to: Path;
  /** How to recognize the outcome at `to`. */
  readonly outcome: {
    readonly kind: 'file' | 'folder';
    /** Id of a moved entry. */
    readonly id?: string;
    /** For a copy: the ids at `from` and `to` before the call, none of which the copy has. */
    readonly otherIds: readonly string[];
    readonly contentHash?: string;
  };
  /** Whether the local files at and below `from` move or are copied too. */
  readonly takesLocalFiles: boolean;
  readonly kept: readonly Kept[];
}

/** Returns the stored form of an intent. The field keeps the name `takesAsides` of older versions. */
export function textOfIntent({ takesLocalFiles: takesAsides, ...intent }: Intent): string {
  return JSON.stringify({ ...intent, takesAsides });
}

/** Parses the stored form of an intent. */
export function intentOfText(text: string): Intent {
  const { takesAsides: takesLocalFiles, ...intent } = JSON.parse(text);
  return { ...intent, takesLocalFiles };
}

/** The intents of one drive. Durable. */
export interface Intents {
  ids(): Promise<readonly string[]>;
  get(id: string): Promise<Intent | undefined>;
  /** Stores a new intent. */
  note(intent: Intent): Promise<void>;
  /** Removes finished intents. */
  remove(ids: readonly string[]): Promise<void>;
}
