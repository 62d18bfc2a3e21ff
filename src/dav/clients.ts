import type { IncomingMessage } from 'node:http';

/** What we know of a client program: rows of data, so that no method asks who is calling. */
export interface Client {
  readonly name: string;
  readonly agent: RegExp;
  /** What "the service is busy or away" must be called so that this client waits instead of giving up the file. */
  readonly statusWhenBusy: 423 | 503 | 504;
  /** What "the service makes no sense" and our own mistakes must be called so that no file is taken for gone. */
  readonly statusWhenBroken: 423 | 500;
  /** Newer Finders wait 90 s at mount time if the server tells its quota. */
  readonly reportsQuota: boolean;
  /** Explorer shows a folder only up to 1,000,000 bytes of properties. */
  readonly allprop: 'full' | 'lean';
  /** An empty PUT is the first half of a create: the content follows in a second one, mostly under a lock. */
  readonly createsEmptyFirst: boolean;
}

const ORDINARY: Client = {
  name: 'other',
  agent: /(?:)/,
  statusWhenBusy: 503,
  statusWhenBroken: 500,
  reportsQuota: true,
  allprop: 'full',
  createsEmptyFirst: false,
};

/**
 * webdavfs takes each 5xx except 507 for "no such file" and drops the file and all below it from its cache
 * (`translate_status_to_error`); 423 is "in use", which people try again.
 */
const FINDER: Client = {
  ...ORDINARY,
  name: 'Finder',
  agent: /^WebDAV(FS|Lib)\//,
  statusWhenBusy: 423,
  statusWhenBroken: 423,
  createsEmptyFirst: true,
};

/** The first row whose `agent` fits. */
const CLIENTS: readonly Client[] = [
  // Built on neon, but with "WebDAVFS" in its name.
  { ...ORDINARY, name: 'Transmit', agent: /Transmit/ },
  // macOS 15.4 is Darwin 24.4.
  {
    ...FINDER,
    name: 'Finder since macOS 15.4',
    agent: /^WebDAV(FS|Lib)\/.*Darwin\/(24\.([4-9]|\d\d)|2[5-9]\.|[3-9]\d\.)/,
    reportsQuota: false,
  },
  FINDER,
  {
    ...ORDINARY,
    name: 'Windows Mini-Redirector',
    agent: /^(Microsoft-WebDAV-MiniRedir|DavClnt)/,
    allprop: 'lean',
    createsEmptyFirst: true,
  },
  { ...ORDINARY, name: 'Microsoft Office', agent: /^(Microsoft Office|Microsoft Data Access|MSOffice)/ },
  // 408 and 504 are EAGAIN and tried again for minutes; 503 is EIO (`get_ne_error`).
  { ...ORDINARY, name: 'davfs2', agent: /^davfs2\//, statusWhenBusy: 504 },
];

/** Who is calling, by the `User-Agent`. */
export function clientOf({ headers }: Pick<IncomingMessage, 'headers'>): Client {
  const agent = headers['user-agent'] ?? '';
  return CLIENTS.find((client) => client.agent.test(agent)) ?? ORDINARY;
}
