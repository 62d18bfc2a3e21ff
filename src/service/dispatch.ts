import type { Answer } from '../http/answer.ts';
import type { Exchange } from '../http/exchange.ts';
import { authorize } from './accounts/authorization.ts';
import { contentAnswer, resultAnswer } from './answers.ts';
import { type Given, headerArgument, rpcArgument } from './argument.ts';
import { primed } from './content/primed.ts';
import { BadArgument, BadCall, WrongMethod } from './failures.ts';
import { incomingOf } from './incoming.ts';
import { checkPathRoot } from './path-root.ts';
import { toldRefusal } from './refusals.ts';
import type { Caller, Rooms, Route } from './route.ts';
import { ROUTES } from './routes/table.ts';
import { within } from './schema.ts';
import { StorageError } from './storage/storage.ts';

const PREFIX = '/2/';

export function isFunctionPath(path: string): boolean {
  return path.startsWith(PREFIX);
}

/** The function's name in an address, for errors and the log. */
export function functionName(path: string): string {
  return path.slice(PREFIX.length);
}

/** One of the service's addresses, and which functions it answers. */
export interface Host {
  readonly role: 'all' | 'base' | 'content';
  /** The other one. */
  readonly otherUrl: () => string;
}

/** Runs the function that the request names. Throws what `failureAnswer` tells. */
export async function callFunction(exchange: Exchange, rooms: Rooms, host: Host): Promise<Answer> {
  const name = functionName(exchange.path);
  const route = ROUTES.get(name);
  // In the real service's words (orgzly-android #1011, maestral #754).
  if (!route) throw new BadCall(`Unknown API function: ${exchange.path}`);
  checkHost(host, route);
  checkMethod(exchange.request.method ?? '', route);
  try {
    return await callRoute(exchange, rooms, route);
  } catch (error) {
    throw error instanceof StorageError ? toldRefusal(error, route.refusals) : error;
  }
}

async function callRoute(exchange: Exchange, rooms: Rooms, route: Route): Promise<Answer> {
  const { request, query } = exchange;
  const caller = authorize(request, query, route, rooms);
  if (route.auth !== 'none') exchange.principal = caller?.account.id ?? 'app';
  if (caller) checkPathRoot(request, caller.account);
  const given =
    route.style === 'rpc'
      ? await rpcArgument(request, exchange.body(), route)
      : headerArgument(request, query, route.style);
  try {
    return await run(exchange, rooms, route, caller, given);
  } catch (error) {
    throw error instanceof BadArgument ? new BadCall(`${given.place}: ${error.message}`) : error;
  }
}

async function run(
  exchange: Exchange,
  rooms: Rooms,
  route: Route,
  caller: Caller | undefined,
  { place, value }: Given,
): Promise<Answer> {
  const { request, signal, address } = exchange;
  const call = { ...rooms, caller, signal, address };
  switch (route.style) {
    case 'rpc':
      return resultAnswer(await within(place, () => route.prepare(value))(call));
    case 'upload': {
      const incoming = (contentHash: string | undefined) => incomingOf(exchange, contentHash);
      return resultAnswer(await within(place, () => route.prepare(value))({ ...call, incoming }));
    }
    case 'download': {
      const { range, 'if-none-match': ifNoneMatch } = request.headers;
      const content = await within(place, () => route.prepare(value))({ ...call, range, ifNoneMatch });
      return contentAnswer({ ...content, bytes: await primed(content.bytes) });
    }
  }
}

/** In the real service's words (kunalvarma05/dropbox-php-sdk #100). */
function checkHost({ role, otherUrl }: Host, { name, host }: Route): void {
  if (role === 'all' || (role === 'content') === (host === 'content')) return;
  throw new BadCall(`Incorrect host for API function ${name}.  You must issue the request to ${otherUrl()}`);
}

function checkMethod(method: string, route: Route): void {
  const allowed = route.style === 'download' ? ['POST', 'GET'] : ['POST'];
  if (!allowed.includes(method))
    throw new WrongMethod(
      `${method} is not a method of "${route.name}"; use ${allowed.join(' or ')}.`,
      allowed,
    );
}
