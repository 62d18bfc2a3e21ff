import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { type CursorOwner, StorageError } from '../storage.ts';

/** The position of a client in a listing or in its changes. */
export interface CursorState {
  readonly ns: number;
  /** The folder's key; `''` is the root. */
  readonly key: string;
  readonly recursive: boolean;
  readonly includeDeleted: boolean;
  /** The last change number that the client has, or will have at the end of the listing. */
  readonly seq: number;
  /** Entries per page, as requested by the first call. */
  readonly limit: number;
  /** The last entry of an unfinished listing; `''` and `''` before the first. */
  readonly after?: { readonly parent: string; readonly nameKey: string };
  /** The last commit that the client has seen, where commits can be lost with a database that is restored. */
  readonly commit?: SeenCommit;
}

/** What tells a commit from every other one of its namespace. */
export interface SeenCommit {
  readonly version: number;
  /** The first digits of its mark. */
  readonly mark: string;
}

const MAC_BYTES = 16;

/** Length of the data directory's tag, in hex digits. */
const TAG_CHARS = 8;

/** Encodes positions as the opaque texts that clients keep, signed and bound to their owner, and decodes them. */
export class Cursors {
  constructor(
    private readonly key: Buffer,
    private readonly directoryTag: string,
    /** Returns the last commit of what is listed. */
    private readonly lastCommit: () => SeenCommit | undefined = () => undefined,
  ) {}

  /** Returns the text of a position that is reached now; `owner` is an `ownerDigest`. */
  encode(owner: string, { ns, key, recursive, includeDeleted, seq, limit, after }: CursorState): string {
    const flags = (recursive ? 1 : 0) + (includeDeleted ? 2 : 0);
    const commit = this.lastCommit();
    const fields: Fields = [owner, ns, key, flags, seq, limit];
    if (after) fields.push(after.parent, after.nameKey);
    else if (commit) fields.push(null, null);
    if (commit) fields.push(commit.version, commit.mark);
    const payload = Buffer.from(JSON.stringify(fields));
    const head = Buffer.from(this.directoryTag);
    return Buffer.concat([head, this.#mac(payload), payload]).toString('base64url');
  }

  /**
   * Decodes a cursor. Throws `malformed` for a text that was never a cursor, `reset` for a cursor of another data
   * directory.
   */
  decode(cursor: string): { readonly owner: string; readonly state: CursorState } {
    const bytes = Buffer.from(cursor, 'base64url');
    const tag = bytes.toString('latin1', 0, TAG_CHARS);
    if (!/^[\w-]+$/.test(cursor) || bytes.length <= TAG_CHARS + MAC_BYTES || !/^[0-9a-f]{8}$/.test(tag))
      throw refused('malformed');
    if (tag !== this.directoryTag) throw refused('reset');
    const payload = bytes.subarray(TAG_CHARS + MAC_BYTES);
    const mac = bytes.subarray(TAG_CHARS, TAG_CHARS + MAC_BYTES);
    if (!timingSafeEqual(mac, this.#mac(payload))) throw refused('malformed');
    return parsed(payload);
  }

  /** Returns a short signature: only this service checks it, so guessing takes a call for each attempt. */
  #mac(payload: Buffer): Buffer {
    return createHmac('sha256', this.key).update(payload).digest().subarray(0, MAC_BYTES);
  }
}

/** Returns the digest of an owner in a cursor. */
export function ownerDigest({ namespace, account, app }: CursorOwner): string {
  return createHash('sha256')
    .update(JSON.stringify([namespace, account, app]))
    .digest('base64url')
    .slice(0, 16);
}

/** Returns the refusal of a cursor. */
export function refused(tag: 'reset' | 'malformed'): StorageError {
  return new StorageError({ kind: 'cursor', tag });
}

/** The signature proves that davgate encoded the fields, so none is missing. */
type Fields = [
  owner: string,
  ns: number,
  key: string,
  flags: number,
  seq: number,
  limit: number,
  parent?: string | null,
  nameKey?: string | null,
  version?: number,
  mark?: string,
];

function parsed(payload: Buffer): { readonly owner: string; readonly state: CursorState } {
  const [owner, ns, key, flags, seq, limit, parent, nameKey, version, mark] = JSON.parse(
    payload.toString(),
  ) as Fields;
  const scope = { ns, key, recursive: (flags & 1) !== 0, includeDeleted: (flags & 2) !== 0 };
  const after = parent != null && nameKey != null ? { after: { parent, nameKey } } : {};
  const commit = version !== undefined && mark !== undefined ? { commit: { version, mark } } : {};
  return { owner, state: { ...scope, seq, limit, ...after, ...commit } };
}
