import type { CommitInfo } from '../api/commit.ts';

/** The permission to read one revision of a file. */
export interface DownloadTarget {
  readonly kind: 'download';
  readonly accountId: string;
  readonly rev: string;
}

/** The permission to write a file once. */
export interface UploadTarget {
  readonly kind: 'upload';
  readonly accountId: string;
  readonly commit: CommitInfo;
  /** Without it the link is older than teams, and the account's home is meant. */
  readonly namespace?: string;
}

export type TemporaryTarget = DownloadTarget | UploadTarget;

/** Links that work without a token for some hours. Only their hashes are stored. */
export interface TemporaryLinks {
  /** Adds a link. Returns its secret. */
  add(target: TemporaryTarget, expiresMs: number): Promise<string>;
  /** Returns the target of a download link; `'over'` if it has expired, `undefined` if there is no such link. */
  download(secret: string, nowMs: number): Promise<DownloadTarget | 'over' | undefined>;
  /**
   * Gives an upload link to one upload of all processes. A claim outlives its process, because nobody knows whether the
   * file was stored. Returns `'claimed'` if another upload has the link, otherwise like `download`.
   */
  claimUpload(secret: string, nowMs: number): Promise<UploadTarget | 'claimed' | 'over' | undefined>;
  /** Ends a claim whose upload has stored nothing. */
  release(secret: string): Promise<void>;
  /** Ends a claimed link. */
  markUsed(secret: string): Promise<void>;
  /** Removes up to `limit` links that ended long ago. Returns how many. */
  forgetOld(nowMs: number, limit: number): Promise<number>;
}

/** How long a driver keeps an ended link, in ms: a day. */
export const OVER_KEPT_MS = 24 * 60 * 60 * 1000;
