import type { HttpRequest } from '../util/http-messages.ts';

/** The needs of a client program. Methods read these fields and never the program's name. */
export interface Client {
  readonly name: string;
  readonly agent: RegExp;
  /** The status for "the service is busy or unreachable" on which this client waits and tries again. */
  readonly statusWhenBusy: 423 | 503 | 504;
  /** The status for internal errors that does not make this client believe that the file is gone. */
  readonly statusWhenBroken: 423 | 500;
  /** Whether quota properties are shown. Newer Finders take 90 s longer to mount when they are. */
  readonly reportsQuota: boolean;
  /** Which properties `allprop` includes. Explorer opens no folder with more than 1,000,000 bytes of them. */
  readonly allprop: 'full' | 'lean';
  /** Whether the client creates a file with an empty PUT and sends its content in a second one, often under a lock. */
  readonly createsEmptyFirst: boolean;
  /**
   * How the client learns that its user is read-only: from OPTIONS that offer no locks, or from the refusal of the lock
   * that it takes before a change. davfs2 without locks acknowledges a change before it sends it.
   */
  readonly readOnlySign: 'no locks' | 'refused lock';
  /** The status of a change that the user may not make. */
  readonly statusWhenReadOnly: 403 | 423;
  /** Whether the client deletes what it could not send, and the former version with it (rclone#3263). */
  readonly deletesAfterFailedPut: boolean;
}

const ORDINARY: Client = {
  name: 'other',
  agent: /(?:)/,
  statusWhenBusy: 503,
  statusWhenBroken: 500,
  reportsQuota: true,
  allprop: 'full',
  createsEmptyFirst: false,
  readOnlySign: 'refused lock',
  statusWhenReadOnly: 403,
  deletesAfterFailedPut: false,
};

/**
 * webdavfs treats every 5xx except 507 as "no such file" and drops the file, or the whole folder, from its cache
 * (`translate_status_to_error`). 423 means "in use", and users try again.
 */
const FINDER: Client = {
  ...ORDINARY,
  name: 'Finder',
  agent: /^WebDAV(FS|Lib)\//,
  statusWhenBusy: 423,
  statusWhenBroken: 423,
  createsEmptyFirst: true,
  readOnlySign: 'no locks',
};

/** The first row whose `agent` matches applies. */
const CLIENTS: readonly Client[] = [
  // Built on neon, although its User-Agent contains "WebDAVFS".
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
  // davfs2 maps 408 and 504 to EAGAIN and retries for minutes, but 503 to EIO; 423 to EACCES, but 403 to EINVAL
  // (`get_ne_error`).
  { ...ORDINARY, name: 'rclone', agent: /^rclone\//, deletesAfterFailedPut: true },
  { ...ORDINARY, name: 'davfs2', agent: /^davfs2\//, statusWhenBusy: 504, statusWhenReadOnly: 423 },
];

/** Returns the client program that the `User-Agent` names. */
export function clientOf({ headers }: Pick<HttpRequest, 'headers'>): Client {
  return clientNamed(headers['user-agent'] ?? '');
}

/** Returns the name of the client program with this `User-Agent`, for statistics. */
export function clientNameOf(userAgent: string): string {
  return clientNamed(userAgent).name;
}

function clientNamed(userAgent: string): Client {
  return CLIENTS.find((client) => client.agent.test(userAgent)) ?? ORDINARY;
}
