import type { Answer, Exchange } from '../../http/exchange.ts';
import type { HttpRequest } from '../../util/http-messages.ts';
import { inRoot } from '../accounts/accounts.ts';
import { authorize } from '../accounts/authorization.ts';
import { withFirstChunk } from '../content/file-content.ts';
import type { ServiceDeps } from '../deps.ts';
import { ROUTES } from '../routes/table.ts';
import { StorageError } from '../storage/storage.ts';
import { contentAnswer, resultAnswer } from './answers.ts';
import { decodeArgument, type Given, headerArgument, rpcArgument, uploadBody } from './argument.ts';
import { ApiRefusal, BadArgument, BadCall, failure, WrongMethod } from './failures.ts';
import { apiErrorOf } from './refusals.ts';
import { rootInfo } from './root-info.ts';
import type { ApiCaller, Route } from './route.ts';
import { string, union, within } from './schema.ts';

const PREFIX = '/2/';

export function isFunctionPath(path: string): boolean {
  return path.startsWith(PREFIX);
}

/** Returns the function's name in a URL path, for errors and the log. */
export function functionName(path: string): string {
  return path.slice(PREFIX.length);
}

/** One of the service's addresses, and the functions that it answers. */
export interface Host {
  readonly role: 'all' | 'base' | 'content';
  /** The other address, for the error message. */
  readonly otherUrl: string;
}

/** Runs the function that the request names. Throws what `failureAnswer` turns into an answer. */
export async function callFunction(exchange: Exchange, deps: ServiceDeps, host: Host): Promise<Answer> {
  const name = functionName(exchange.path);
  const route = ROUTES.get(name);
  // The real service's text (orgzly-android #1011, maestral #754).
  if (!route) throw new BadCall(`Unknown API function: ${exchange.path}`);
  checkHost(host, route);
  checkMethod(exchange.request.method ?? '', route);
  try {
    return await callRoute(exchange, deps, route);
  } catch (error) {
    throw error instanceof StorageError ? apiErrorOf(error, route.refusals) : error;
  }
}

async function callRoute(exchange: Exchange, deps: ServiceDeps, route: Route): Promise<Answer> {
  const { request, query } = exchange;
  const user = await authorize(request, query, route, deps);
  if (route.auth !== 'none') exchange.principal = user?.account.id ?? 'app';
  const caller = user && atPathRoot(request, user);
  if (caller?.account.team) await deps.makeTeamFolder(caller.account);
  const given =
    route.style === 'rpc'
      ? await rpcArgument(request, exchange.body(), route)
      : headerArgument(request, query, route.style);
  try {
    return await run(exchange, deps, route, caller, given);
  } catch (error) {
    throw error instanceof BadArgument ? new BadCall(`${given.place}: ${error.message}`) : error;
  }
}

async function run(
  exchange: Exchange,
  deps: ServiceDeps,
  route: Route,
  caller: ApiCaller | undefined,
  { place, value }: Given,
): Promise<Answer> {
  const { request, signal, address } = exchange;
  const call = { ...deps, caller, signal, address };
  switch (route.style) {
    case 'rpc':
      return resultAnswer(await within(place, () => route.prepare(value))(call));
    case 'upload': {
      const incoming = (contentHash: string | undefined) => uploadBody(exchange, contentHash);
      return resultAnswer(await within(place, () => route.prepare(value))({ ...call, incoming }));
    }
    case 'download': {
      const { range, 'if-none-match': ifNoneMatch } = request.headers;
      const content = await within(place, () => route.prepare(value))({ ...call, range, ifNoneMatch });
      return contentAnswer({ ...content, bytes: await withFirstChunk(content.bytes) });
    }
  }
}

/** Throws, with the real service's text (kunalvarma05/dropbox-php-sdk #100), unless the host answers the function. */
function checkHost({ role, otherUrl }: Host, { name, host }: Route): void {
  if (role === 'all' || (role === 'content') === (host === 'content')) return;
  throw new BadCall(`Incorrect host for API function ${name}.  You must issue the request to ${otherUrl}`);
}

function checkMethod(method: string, route: Route): void {
  const allowed = route.style === 'download' ? ['POST', 'GET'] : ['POST'];
  if (!allowed.includes(method))
    throw new WrongMethod(
      `${method} is not a method of "${route.name}"; use ${allowed.join(' or ')}.`,
      allowed,
    );
}

const pathRoot = union({ home: null, root: string(), namespace_id: string() });

/**
 * Returns the caller with its paths where `Dropbox-API-Path-Root` lets them begin: in the account's home or its root, which
 * differ in a team. Throws 422 for any other namespace.
 */
function atPathRoot(request: HttpRequest, caller: ApiCaller): ApiCaller {
  const header = request.headers['dropbox-api-path-root'];
  if (header === undefined) return caller;
  const { account, owner } = caller;
  const root = within('HTTP header "Dropbox-API-Path-Root"', () => pathRoot(decodeArgument(String(header))));
  if (root.tag === 'home' || (root.tag === 'namespace_id' && root.value === account.namespace)) return caller;
  const { namespace } = inRoot(account);
  if (root.value === namespace)
    return { ...caller, account: inRoot(account), owner: { ...owner, namespace } };
  if (root.tag === 'namespace_id') throw new ApiRefusal(422, failure('no_permission'));
  throw new ApiRefusal(422, {
    tags: ['invalid_root'],
    value: { '.tag': 'invalid_root', invalid_root: rootInfo(account) },
  });
}
