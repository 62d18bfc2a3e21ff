import { t } from './messages.ts';
import { addressOf, base } from './paths.ts';
import { waitSecondsIn } from './retries.ts';

/** What the gateway says about the drive and the session of this browser. */
export interface DriveInfo {
  /** The name of the user who has logged in; `null` on a drive without a login. */
  readonly user: string | null;
  /** Requests that change something show it; absent without a session. */
  readonly csrfToken?: string;
  /** The provider at which the session began; absent if it began with a password. */
  readonly providerName?: string;
  /** Whether writes may wait for the storage service. */
  readonly keepsWrites: boolean;
  /** Whether the user can make app passwords. */
  readonly hasAppPasswords: boolean;
  /** Whether the user can make links by which others send files. */
  readonly hasUploadLinks: boolean;
  /** The folders below which the user may change everything, or only read. */
  readonly places: readonly Place[];
  /** Folders that are only for other programs: this one has its own views of versions and trash. */
  readonly hiddenPaths?: readonly string[];
}

/** A folder, and what the user can do in it. */
export interface Place {
  readonly path: string;
  readonly isReadOnly: boolean;
  /** Whether a deletion can be undone. */
  readonly keepsDeleted: boolean;
}

/** The page's user is not signed in any more. */
export class SignedOut extends Error {
  override readonly name = 'SignedOut';
}

/** Why signing in failed: the status, and how long to wait in seconds. */
export interface SignInFailure {
  readonly status: number;
  readonly waitSeconds: number;
}

/** The header that tells the gateway that the application asks, and not a program that wants a Basic challenge. */
export const CSRF_HEADER = 'X-CSRF-Token';

const INFO = `${base}/.davgate/api/drive`;
const SIGN_IN = `${base}/.davgate/sign-in`;
/** Where a sign-in at the provider begins. */
export const PROVIDER_SIGN_IN = `${base}/.davgate/sign-in/oidc?${new URLSearchParams({ to: `${base}/` })}`;

const SIGN_OUT = `${base}/.davgate/sign-out`;

/** Methods that need no token. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PROPFIND']);

let info: Promise<DriveInfo> | undefined;
/** The user whose drive the page shows: nothing that was begun as this one is done as another. */
let user: string | null | undefined;
let providerName: string | undefined;

/** Tells the other windows of this drive that there is a session. */
const windows = new BroadcastChannel('davgate-session');

let answered: (info: DriveInfo) => void = () => undefined;
/** The first answer of the gateway, to any part of the page that has asked. */
export const firstInfo = new Promise<DriveInfo>((resolve) => {
  answered = resolve;
});

/**
 * Returns the gateway's answer, which is asked for once. Rejects while the gateway does not answer, and while another user is
 * signed in.
 */
export function driveInfo(): Promise<DriveInfo> {
  if (info) return info;
  const asked = askInfo();
  info = asked;
  asked.catch(() => {
    if (info === asked) info = undefined;
  });
  return asked;
}

async function askInfo(): Promise<DriveInfo> {
  const answer = await fetch(INFO, { headers: { [CSRF_HEADER]: '' }, cache: 'no-store' });
  if (!answer.ok) throw new Error(await answer.text());
  const told: DriveInfo = await answer.json();
  // Somebody else has signed in with this browser: their token would send what this page does to their drive.
  if (user !== undefined && told.user !== user) throw new SignedOut(t('signedOut'));
  user = told.user;
  providerName = told.providerName;
  answered(told);
  return told;
}

/** Returns the header that a request needs. */
export async function csrfHeader(method: string): Promise<Readonly<Record<string, string>>> {
  if (SAFE_METHODS.has(method)) return { [CSRF_HEADER]: '' };
  const told = await driveInfo().catch(() => undefined);
  return { [CSRF_HEADER]: told?.csrfToken ?? '' };
}

/** How often a request is sent again after a sign-in; a proxy may refuse it for reasons of its own. */
const RENEWALS_MAX = 2;

/** Sends a request; when the session has ended, again after the person has signed in. Throws `SignedOut`. */
export async function fetchSignedIn(
  method: string,
  address: string,
  { headers, ...init }: RequestInit = {},
): Promise<Response> {
  for (let renewals = 0; ; renewals++) {
    const own = await csrfHeader(method);
    const answer = await fetch(address, { ...init, method, headers: { ...headers, ...own } });
    if (answer.status !== 401 || renewals === RENEWALS_MAX) return answer;
    await renewSession();
  }
}

/** Resolves when there is a session, for a request that the browser sends itself. Throws `SignedOut`. */
export async function ensureSession(): Promise<void> {
  await fetchSignedIn('GET', INFO);
}

/** A session that has ended: its user, who must sign in, and the provider at which it began. */
export interface EndedSession {
  readonly user: string | null;
  readonly providerName: string | undefined;
}

/** Gets the session that has ended, and `undefined` when there is one again. */
export type SessionListener = (ended: EndedSession | undefined) => void;

let listener: SessionListener = () => undefined;
let renewal: { readonly done: Promise<void>; readonly end: (error?: SignedOut) => void } | undefined;

/** Calls `changed` when the session ends, and when there is one again. */
export function watchSession(changed: SessionListener): () => void {
  listener = changed;
  return () => {
    listener = () => undefined;
  };
}

/** Resolves when there is a session again: of another window, or by the person's sign-in. Rejects if they decline. */
export function renewSession(): Promise<void> {
  if (renewal) return renewal.done;
  let end: (error?: SignedOut) => void = () => undefined;
  const done = new Promise<void>((resolve, reject) => {
    end = (error) => {
      renewal = undefined;
      listener(undefined);
      if (error) reject(error);
      else resolve();
    };
  });
  renewal = { done, end };
  void hasSession().then((isThere) => (isThere ? end() : listener({ user: user ?? null, providerName })));
  return done;
}

/** Lets the requests that wait in other windows go on. */
export function announceSession(): void {
  windows.postMessage('session');
}

windows.addEventListener('message', () => {
  if (renewal) void hasSession().then((isThere) => isThere && renewal?.end());
});

/** Gives up: the requests that wait fail. */
export function declineSignIn(): void {
  renewal?.end(new SignedOut(t('signedOut')));
}

/** Signs in and lets the requests that wait go on. Returns why it failed. */
export async function signIn(name: string, password: string): Promise<SignInFailure | undefined> {
  const answer = await fetch(SIGN_IN, {
    method: 'POST',
    headers: { [CSRF_HEADER]: '' },
    body: new URLSearchParams({ name, password }),
  });
  const waitSeconds = waitSecondsIn(answer.headers.get('retry-after'));
  if (!answer.ok) return { status: answer.status, waitSeconds };
  if (!(await hasSession())) return { status: 0, waitSeconds };
  renewal?.end();
  return undefined;
}

/** Ends the session and shows the sign-in page. */
export async function signOut(): Promise<void> {
  const headers = await csrfHeader('POST');
  const answer = await fetch(SIGN_OUT, { method: 'POST', headers });
  if (!answer.ok && answer.status !== 401) throw new Error(await answer.text());
  location.assign(addressOf('/', 'folder'));
}

/** Asks again; whether the page's user is signed in. */
async function hasSession(): Promise<boolean> {
  info = undefined;
  return await driveInfo().then(
    () => true,
    () => false,
  );
}
