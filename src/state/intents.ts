import type { Path } from '../util/path.ts';
import type { DeadProperty } from './properties.ts';

/** What a copied file or folder gets from its original. */
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
 * The local side of a move or copy: noted before the call to the service and crossed out when it is done, so that a kill in
 * between loses nothing.
 */
export interface Intent {
  readonly id: string;
  readonly kind: 'move' | 'copy';
  readonly from: Path;
  readonly to: Path;
  /** How to recognize the outcome at `to`. */
  readonly outcome: {
    readonly kind: 'file' | 'folder';
    /** For a move. */
    readonly id?: string;
    /** For a copy: the ids at `from` and `to` before, none of which the copy has. */
    readonly otherIds: readonly string[];
    readonly contentHash?: string;
  };
  /** The set-aside files at and below `from` follow. */
  readonly takesLocalFiles: boolean;
  readonly kept: readonly Kept[];
}

/** An intent as both drivers store it. The field `takesAsides` keeps its first name: older versions have written it. */
export function textOfIntent({ takesLocalFiles: takesAsides, ...intent }: Intent): string {
  return JSON.stringify({ ...intent, takesAsides });
}

/** The intent that `textOfIntent` made `text` of. */
export function intentOfText(text: string): Intent {
  const { takesAsides: takesLocalFiles, ...intent } = JSON.parse(text);
  return { ...intent, takesLocalFiles };
}

/** The intents of one drive. Durable. */
export interface Intents {
  ids(): Promise<readonly string[]>;
  get(id: string): Promise<Intent | undefined>;
  note(intent: Intent): Promise<void>;
  crossOut(ids: readonly string[]): Promise<void>;
}
