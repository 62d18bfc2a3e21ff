import type { ByteRange } from '../../util/ranges.ts';
import type { Account } from '../accounts/accounts.ts';
import type { Scope } from '../accounts/scopes.ts';
import type { ServiceDeps } from '../deps.ts';
import type { CursorOwner, Incoming } from '../storage/storage.ts';
import type { RefusalTable } from './refusals.ts';
import { type Fields, type StructOf, struct } from './schema.ts';

/** Who calls, by a token. */
export interface ApiCaller {
  readonly account: Account;
  readonly token: string;
  /** What list cursors are bound to. */
  readonly owner: CursorOwner;
}

/** A call of an RPC function, but for its argument. `Who` is `ApiCaller` wherever a token is asked for. */
export interface ApiCall<Who> extends ServiceDeps {
  readonly caller: Who;
  /** The client's IP address. */
  readonly address: string;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

export interface UploadCall<Who = ApiCaller> extends ApiCall<Who> {
  /** The request's body, capped at the 150 MiB of one call. */
  incoming(contentHash: string | undefined): Incoming;
}

export interface DownloadCall<Who = ApiCaller> extends ApiCall<Who> {
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

/** Bytes made for this one call: they have no revision, and no part of them can be asked for. */
export interface MadeContent {
  readonly type: string;
  readonly sizeBytes: number;
  readonly result: object;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Checks an argument; what it returns runs the call. */
type Prepare<C, Answer> = (argument: unknown) => (call: C) => Promise<Answer>;

/** The real service's hosts: one for bytes (`content`), one for long polls, one for all else. */
export type RouteHost = 'api' | 'content' | 'notify';

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
  readonly host: RouteHost;
}

/** Who may call: a user by a token, an app by its key and secret, either of them, or only one who is neither. */
export type RouteAuth = 'user' | 'app' | 'app-or-user' | 'none';

/** The user; `undefined` where it is an app or no one that calls. */
type Someone = ApiCaller | undefined;

/** One row of the table: all that is known of a function. */
export type Route = Known & { readonly auth: RouteAuth } & (
    | { readonly style: 'rpc'; readonly prepare: Prepare<ApiCall<Someone>, Result> }
    | { readonly style: 'upload'; readonly prepare: Prepare<UploadCall<Someone>, Result> }
    | { readonly style: 'download'; readonly prepare: Prepare<DownloadCall<Someone>, Content | MadeContent> }
  );

interface Row<F extends Fields, C, Answer> extends Common {
  /** Left out: `api` for RPC, `content` for the styles with bytes. */
  readonly host?: RouteHost;
  /** The fields of its argument; one without any takes none, or null. */
  readonly argument: F;
  readonly handle: (call: C & { readonly argument: StructOf<F> }) => Answer | Promise<Answer>;
}

export function rpc<F extends Fields>(row: Row<F, ApiCall<ApiCaller>, Result>): Route {
  return {
    ...commonOf(row, 'api'),
    style: 'rpc',
    auth: 'user',
    prepare: forUsers<ApiCall<Someone>, Result>(prepared(row)),
  };
}

/** An RPC function that others than users may call too, or alone. */
export function openRpc<F extends Fields>(
  auth: Exclude<RouteAuth, 'user'>,
  row: Row<F, ApiCall<Someone>, Result>,
): Route {
  return { ...commonOf(row, 'api'), style: 'rpc', auth, prepare: prepared(row) };
}

export function upload<F extends Fields>(row: Row<F, UploadCall, Result>): Route {
  return {
    ...commonOf(row, 'content'),
    style: 'upload',
    auth: 'user',
    prepare: forUsers<UploadCall<Someone>, Result>(prepared(row)),
  };
}

export function download<F extends Fields>(row: Row<F, DownloadCall, Content | MadeContent>): Route {
  return {
    ...commonOf(row, 'content'),
    style: 'download',
    auth: 'user',
    prepare: forUsers<DownloadCall<Someone>, Content | MadeContent>(prepared(row)),
  };
}

/** A download-style function that apps may call too. */
export function openDownload<F extends Fields>(
  row: Row<F, DownloadCall<Someone>, Content | MadeContent>,
): Route {
  return { ...commonOf(row, 'content'), style: 'download', auth: 'app-or-user', prepare: prepared(row) };
}

function forUsers<C extends { readonly caller: Someone }, Answer>(
  prepare: Prepare<C & { readonly caller: ApiCaller }, Answer>,
): Prepare<C, Answer> {
  return (argument) => {
    const run = prepare(argument);
    return async (call) => {
      if (!call.caller) throw new Error('a function for users was run without one');
      return await run({ ...call, caller: call.caller });
    };
  };
}

function commonOf(
  { name, scope, refusals, argument, host }: Common & Pick<Row<Fields, never, never>, 'argument' | 'host'>,
  usualHost: RouteHost,
): Known {
  return { name, scope, refusals, void: Object.keys(argument).length === 0, host: host ?? usualHost };
}

function prepared<F extends Fields, C extends object, Answer>(row: Row<F, C, Answer>): Prepare<C, Answer> {
  const schema = struct(row.argument);
  return (value) => {
    const argument = schema(value);
    return async (call) => row.handle({ ...call, argument });
  };
}
