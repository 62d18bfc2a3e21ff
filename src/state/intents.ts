import type { Path } from '../util/path.ts';
import type { DeadProperty } from './properties.ts';

/** What one file or folder of a copy gets from its original. */
export interface Kept {
  /** Where the copy of it will be. */
  readonly path: Path;
  readonly kind: 'file' | 'folder';
  /** Of a file: the time is for this content only. */
  readonly contentHash?: string;
  readonly properties: readonly DeadProperty[];
  /** The modification time that a client has set. */
  readonly modifiedMs?: number;
}

/**
 * What is to follow on this machine when the service has moved or copied something: noted before the service is asked,
 * crossed out when it is done, so that a kill in between loses nothing.
 */
export interface Intent {
  readonly id: string;
  readonly kind: 'move' | 'copy';
  readonly from: Path;
  readonly to: Path;
  /** How to recognize at `to` what the service has made there. */
  readonly outcome: {
    readonly kind: 'file' | 'folder';
    /** Of a move. */
    readonly id?: string;
    /** Of a copy: it has none of these ids, which were at `from` and `to` before. */
    readonly otherIds: readonly string[];
    readonly contentHash?: string;
  };
  /** The set-aside files at and below `from` go along. */
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
