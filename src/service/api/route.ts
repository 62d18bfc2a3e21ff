import type { ByteRange } from '../../util/ranges.ts';
import type { Account } from '../accounts/accounts.ts';
import type { Scope } from '../accounts/scopes.ts';
import type { ServiceDeps } from '../deps.ts';
import type { CursorOwner, Incoming } from '../storage/storage.ts';
import type { RefusalTable } from './refusals.ts';
import { type Fields, type StructOf, struct } from './schema.ts';

/** The user who calls, by an access token. */
export interface ApiCaller {
  readonly account: Account;
  readonly token: string;
  /** The owner that list cursors are bound to. */
  readonly owner: CursorOwner;
}

/** A call of an RPC function, without its argument. `Who` is `ApiCaller` for functions that need a token. */
export interface ApiCall<Who> extends ServiceDeps {
  readonly caller: Who;
  /** The client's IP address. */
  readonly address: string;
  /** Aborted when the client has gone. */
  readonly signal: AbortSignal;
}

export interface UploadCall<Who = ApiCaller> extends ApiCall<Who> {
  /** Returns the request's body, limited to the 150 MiB of one call. */
  incoming(contentHash: string | undefined): Incoming;
}

export interface DownloadCall<Who = ApiCaller> extends ApiCall<Who> {
  /** The request's header of this name. */
  readonly range: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

/** A JSON value; `null` is the result of functions without one. */
export type Result = object | null;

/** A result too large for memory, as the text of its JSON. Each piece is made when the client has taken the one before. */
export class WrittenResult {
  constructor(readonly pieces: AsyncIterable<Uint8Array>) {}
}

/** The content of a download, or that the client's copy is current. */
export interface Content {
  readonly rev: string;
  readonly sizeBytes: number;
  /** Metadata in a header beside the bytes. */
  readonly result: object;
  /** `undefined`: all bytes. `'not-modified'`: none, because the client's copy is current. */
  readonly range: ByteRange | 'not-modified' | undefined;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Content generated for this call: it has no revision and no ranges. */
export interface MadeContent {
  readonly type: string;
  readonly sizeBytes: number;
  readonly result: object;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Checks an argument, and returns a function that runs the call. */
type Prepare<C, Answer> = (argument: unknown) => (call: C) => Promise<Answer>;

/** The real service's hosts: for file bytes (`content`), for long polls (`notify`), and for everything else. */
export type RouteHost = 'api' | 'content' | 'notify';

interface Common {
  /** The name as in the URL, with `_v2` and so on. */
  readonly name: string;
  /** The scope that a token needs; `undefined` where any token, or none, is enough. */
  readonly scope: Scope | undefined;
  readonly refusals: RefusalTable;
}

interface Known extends Common {
  /** Whether the function has no argument. */
  readonly void: boolean;
  readonly host: RouteHost;
}

/**
 * Who may call: a user by a token, an app by its key and secret, either of them, or only callers without authorization.
 */
export type RouteAuth = 'user' | 'app' | 'app-or-user' | 'none';

/** The user; `undefined` when an app or nobody calls. */
type Someone = ApiCaller | undefined;

/** One row of the table of functions. */
export type Route = Known & { readonly auth: RouteAuth } & (
    | { readonly style: 'rpc'; readonly prepare: Prepare<ApiCall<Someone>, Result> }
    | { readonly style: 'upload'; readonly prepare: Prepare<UploadCall<Someone>, Result> }
    | { readonly style: 'download'; readonly prepare: Prepare<DownloadCall<Someone>, Content | MadeContent> }
  );

interface Row<F extends Fields, C, Answer> extends Common {
  /** By default `api` for RPC and `content` for the styles with bytes. */
  readonly host?: RouteHost;
  /** The fields of the argument; a function without fields takes no argument, or null. */
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

/** Returns the route of an RPC function that not only users may call. */
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

/** Returns the route of a download-style function that apps may call too. */
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
