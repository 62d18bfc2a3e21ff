import type { Clock } from '../util/clock.ts';
import type { ByteRange } from '../util/ranges.ts';
import type { Account } from './accounts.ts';
import type { Jobs } from './jobs.ts';
import type { Links } from './links.ts';
import type { RefusalTable } from './refusals.ts';
import { type Fields, type StructOf, struct } from './schema.ts';
import type { Scope } from './scopes.ts';
import type { CursorOwner, Incoming, Storage } from './storage/storage.ts';
import type { TemporaryLinks } from './temporary-links.ts';
import type { Tokens } from './tokens.ts';

/** What the functions of the interface work with; one for the whole service. */
export interface Rooms {
  readonly storage: Storage;
  readonly links: Links;
  readonly temporaryLinks: TemporaryLinks;
  readonly tokens: Tokens;
  readonly jobs: Jobs;
  readonly clock: Clock;
  /** Bytes free on the disk that holds the data. */
  readonly freeBytes: () => Promise<number>;
  readonly accountWithId: (id: string) => Account;
  /** Without a slash at the end; where shared links lead. */
  readonly webUrl: () => string;
  /** Aborted when the service closes: whoever waits should answer. */
  readonly closing: AbortSignal;
}

/** Who calls, by a token. */
export interface Caller {
  readonly account: Account;
  readonly token: string;
  /** What list cursors are bound to. */
  readonly owner: CursorOwner;
}

/** A call of an RPC function, but for its argument. `Who` is `Caller` wherever a token is asked for. */
export interface Call<Who> extends Rooms {
  readonly caller: Who;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

export interface UploadCall extends Call<Caller> {
  /** The request's body, capped at the 150 MiB of one call. */
  incoming(contentHash: string | undefined): Incoming;
}

export interface DownloadCall extends Call<Caller> {
  /** The request's headers of these names. */
  readonly range: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

/** A JSON value; `null` is what functions without a result answer. */
export type Result = object | null;

/** Bytes on their way out, or that the client has them already. */
export interface Content {
  readonly rev: string;
  readonly sizeBytes: number;
  /** Told in a header, beside the bytes. */
  readonly result: object;
  /** `undefined`: all of it. `'not-modified'`: none, the client's copy is good. */
  readonly range: ByteRange | 'not-modified' | undefined;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** An archive made for this one call: it has no revision, and no part of it can be asked for. */
export interface Archive {
  readonly sizeBytes: number;
  readonly result: object;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Checks an argument; what it returns runs the call. */
type Prepare<C, Answer> = (argument: unknown) => (call: C) => Promise<Answer>;

interface Common {
  /** As in the URL, with `_v2` and so on. */
  readonly name: string;
  /** What a token must be allowed to do; `undefined` where any token, or none, will do. */
  readonly scope: Scope | undefined;
  readonly refusals: RefusalTable;
}

interface Known extends Common {
  /** Whether it takes no argument. */
  readonly void: boolean;
}

/**
 * One row of the table: all that is known of a function. With `auth` `user` it is called with a bearer
 * token, with `none` without any Authorization.
 */
export type Route =
  | (Known & {
      readonly style: 'rpc';
      readonly auth: 'user';
      readonly prepare: Prepare<Call<Caller>, Result>;
    })
  | (Known & {
      readonly style: 'rpc';
      readonly auth: 'none';
      readonly prepare: Prepare<Call<undefined>, Result>;
    })
  | (Known & {
      readonly style: 'upload';
      readonly auth: 'user';
      readonly prepare: Prepare<UploadCall, Result>;
    })
  | (Known & {
      readonly style: 'download';
      readonly auth: 'user';
      readonly prepare: Prepare<DownloadCall, Content | Archive>;
    });

interface Row<F extends Fields, C, Answer> extends Common {
  /** The fields of its argument; one without any takes none, or null. */
  readonly argument: F;
  readonly handle: (call: C & { readonly argument: StructOf<F> }) => Answer | Promise<Answer>;
}

export function rpc<F extends Fields>(row: Row<F, Call<Caller>, Result>): Route {
  return { ...commonOf(row), style: 'rpc', auth: 'user', prepare: prepared(row) };
}

/** An RPC function that is called without a token. */
export function openRpc<F extends Fields>(row: Row<F, Call<undefined>, Result>): Route {
  return { ...commonOf(row), style: 'rpc', auth: 'none', prepare: prepared(row) };
}

export function upload<F extends Fields>(row: Row<F, UploadCall, Result>): Route {
  return { ...commonOf(row), style: 'upload', auth: 'user', prepare: prepared(row) };
}

export function download<F extends Fields>(row: Row<F, DownloadCall, Content | Archive>): Route {
  return { ...commonOf(row), style: 'download', auth: 'user', prepare: prepared(row) };
}

function commonOf({ name, scope, refusals, argument }: Common & { readonly argument: Fields }): Known {
  return { name, scope, refusals, void: Object.keys(argument).length === 0 };
}

function prepared<F extends Fields, C extends object, Answer>(row: Row<F, C, Answer>): Prepare<C, Answer> {
  const schema = struct(row.argument);
  return (value) => {
    const argument = schema(value);
    return async (call) => row.handle({ ...call, argument });
  };
}
