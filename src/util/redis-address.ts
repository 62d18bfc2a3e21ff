/** A parsed address of a Redis. */
export interface RedisAddress {
  /** One server; the primary that Sentinels name; or the nodes of a cluster. */
  readonly kind: 'server' | 'sentinel' | 'cluster';
  readonly isTls: boolean;
  readonly username?: string;
  readonly password?: string;
  /** The server, the Sentinels, or some nodes of the cluster: at least one. */
  readonly hosts: readonly { readonly host: string; readonly port: number }[];
  /** Name under which Sentinels know the primary; `''` for the other kinds. */
  readonly primary: string;
  /** Number of the database. */
  readonly database: number;
}

const ADDRESS =
  /^(?<scheme>rediss?)(?:\+(?<kind>sentinel|cluster))?:\/\/(?:(?<login>[^/?#@]*)@)?(?<hosts>[^/?#@]+)(?<path>\/[^?#]*)?$/;

const PORT = 6379;
const SENTINEL_PORT = 26379;

/**
 * Returns the parts of `redis[s]://[USER:PASSWORD@]HOST[:PORT][/DB]`, `redis[s]+cluster://…HOST:PORT,…` or
 * `redis[s]+sentinel://…HOST:PORT,…/PRIMARY[/DB]`; `undefined` for any other text.
 */
export function redisAddressOf(text: string): RedisAddress | undefined {
  const groups = ADDRESS.exec(text)?.groups;
  if (!groups) return undefined;
  const kind = groups['kind'] === 'sentinel' || groups['kind'] === 'cluster' ? groups['kind'] : 'server';
  const names = (groups['hosts'] ?? '').split(',');
  if (kind === 'server' && names.length > 1) return undefined;
  try {
    const hosts = names.map((name) => hostOf(name, kind === 'sentinel' ? SENTINEL_PORT : PORT));
    const place = placeOf(kind, (groups['path'] ?? '').slice(1));
    if (!place) return undefined;
    return { kind, isTls: groups['scheme'] === 'rediss', hosts, ...place, ...loginOf(groups['login'] ?? '') };
  } catch {
    // A host, a port or an encoding that is none.
    return undefined;
  }
}

/** Returns the address without the password, for logs and messages. */
export function redactedAddress(text: string): string {
  return text.replace(/\/\/([^:@/]*):[^@/]+@/, '//$1:***@');
}

function hostOf(text: string, defaultPort: number): RedisAddress['hosts'][number] {
  const { hostname, port, href } = new URL(`redis://${text}`);
  if (hostname === '' || !href.startsWith('redis://')) throw new Error('no host');
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) };
}

function placeOf(
  kind: RedisAddress['kind'],
  path: string,
): { readonly primary: string; readonly database: number } | undefined {
  const [first = '', ...rest] = path.split('/');
  const [primary, database, ...more] =
    kind === 'sentinel' ? [decodeURIComponent(first), ...rest] : ['', first, ...rest];
  const isComplete = kind !== 'sentinel' || primary !== '';
  // A cluster has only database 0.
  const isNumber = kind === 'cluster' ? /^0?$/.test(database ?? '') : /^\d*$/.test(database ?? '');
  return isComplete && isNumber && more.length === 0
    ? { primary, database: Number(database ?? 0) }
    : undefined;
}

function loginOf(text: string): Pick<RedisAddress, 'username' | 'password'> {
  if (text === '') return {};
  const [username = '', ...password] = text.split(':');
  return {
    ...(username !== '' && { username: decodeURIComponent(username) }),
    ...(password.length > 0 && { password: decodeURIComponent(password.join(':')) }),
  };
}
