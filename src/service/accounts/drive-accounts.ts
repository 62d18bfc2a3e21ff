import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeSecret } from '../../util/secret-file.ts';
import type { Directory } from '../directory/directory.ts';
import type { Account } from './accounts.ts';
import { addAccount, type Credentials, DEFAULT_EMAIL } from './provision.ts';
import { SCOPES } from './scopes.ts';

/** A drive of a gateway whose files are in this embedded service. */
export interface EmbeddedDrive {
  readonly name: string;
  /** Address of the account that the configuration names. */
  readonly account: string | undefined;
  /** Folder of the account that is the drive's root; `''` for all of it. */
  readonly root: string;
}

/** It is ambiguous whose files a drive shows; `message` says why and what to configure. */
export class DriveAccountError extends Error {
  override readonly name = 'DriveAccountError';
}

/** The account that a drive had when it was last served, and its token. */
interface KeptDrive {
  readonly email: string;
  readonly token: string;
}

/** File with tokens in clear text, which the gateway needs to log in. Readable by its owner only. */
const FILE_NAME = 'drives.json';

/** Facts that decide which account a drive has. */
export interface AssignmentDeps {
  /** Address of each drive's account, from earlier starts. */
  readonly kept: ReadonlyMap<string, string>;
  /** Whether the default account never had files. */
  readonly isDefaultEmpty: () => Promise<boolean>;
  /** Directory to name in messages. */
  readonly dataDirectory: string;
}

/**
 * Returns the address of each drive's account. A drive keeps its account; the only drive of a configuration gets the
 * default account, which all drives once shared; any other drive gets an account of its own. Throws `DriveAccountError`
 * where that would expose or hide somebody's files.
 */
export async function assignAccounts(
  drives: readonly EmbeddedDrive[],
  deps: AssignmentDeps,
): Promise<ReadonlyMap<string, string>> {
  const assigned = new Map<string, string>();
  for (const { name, account } of drives) {
    const email = account ?? deps.kept.get(name);
    if (email !== undefined) assigned.set(name, email);
  }
  const added = drives.filter(({ name }) => !assigned.has(name)).map(({ name }) => name);
  for (const name of added) assigned.set(name, await accountOfNewDrive(name, { ...deps, drives, assigned }));
  refuseUnasked(drives, assigned);
  return assigned;
}

interface NewDriveDeps extends AssignmentDeps {
  readonly drives: readonly EmbeddedDrive[];
  /** Accounts of the existing drives, and of the new ones assigned so far. */
  readonly assigned: ReadonlyMap<string, string>;
}

async function accountOfNewDrive(name: string, deps: NewDriveDeps): Promise<string> {
  const { drives, assigned, kept, isDefaultEmpty, dataDirectory } = deps;
  const own = `${name}@drives.davgate.invalid`;
  const holder = [...kept].find(([, email]) => email === DEFAULT_EMAIL)?.[0];
  if (drives.length === 1) {
    if (holder === undefined) return DEFAULT_EMAIL;
    if (await isDefaultEmpty()) return own;
    throw new DriveAccountError(
      `drive "${name}" is new, and the files in ${dataDirectory} belong to the drive "${holder}": name this one "${holder}", or hand the files on to it with its setting "account": "${DEFAULT_EMAIL}" (DAVGATE_ACCOUNT)`,
    );
  }
  const isClaimed = [...assigned.values()].includes(DEFAULT_EMAIL);
  if (kept.size > 0 || isClaimed || (await isDefaultEmpty())) return own;
  const names = drives.map((drive) => drive.name).join(', ');
  throw new DriveAccountError(
    `${dataDirectory} holds files from a time when all drives shared one account, and nothing says which of the drives ${names} they belong to: write "account": "${DEFAULT_EMAIL}" in that drive's settings (or in several, to go on sharing them); the others get an account of their own`,
  );
}

/** Throws if two drives share an account that is not configured for both. */
function refuseUnasked(drives: readonly EmbeddedDrive[], assigned: ReadonlyMap<string, string>): void {
  for (const { name, account } of drives) {
    const email = assigned.get(name)?.toLowerCase();
    const other = drives.find(
      (drive) => drive.name !== name && assigned.get(drive.name)?.toLowerCase() === email,
    );
    if (other && account === undefined)
      throw new DriveAccountError(
        `the drives "${name}" and "${other.name}" would both have the account ${email}: write "account" in the settings of both to share it, or another address in one`,
      );
  }
}

/** `serve` serves the drives; `test` creates and keeps nothing, and tests a new drive in the default account. */
export type DrivePurpose = 'serve' | 'test';

/** Operations of the service that the gateway's drives need. */
export interface DriveAccountDeps {
  readonly purpose: DrivePurpose;
  readonly directory: Directory;
  /** Credentials of the default account and app; the tokens are for that app. */
  readonly credentials: Credentials;
  readonly dataDirectory: string;
  readonly nowMs: number;
  /** Whether an account never had files. */
  readonly isEmpty: (account: Account) => Promise<boolean>;
  /** Creates a folder in an account unless it exists. */
  readonly makeFolder: (account: Account, path: string) => Promise<void>;
}

/**
 * Returns an access token for each drive's account, and creates its root. From then on each drive keeps its account;
 * this is on disk when the function resolves. Throws `DriveAccountError`.
 */
export async function provisionDrives(
  drives: readonly EmbeddedDrive[],
  deps: DriveAccountDeps,
): Promise<ReadonlyMap<string, string>> {
  const file = join(deps.dataDirectory, FILE_NAME);
  const before = readKept(file);
  const defaultAccount = await deps.directory.accounts.withEmail(DEFAULT_EMAIL);
  const assigned = await assignAccounts(drives, {
    kept: new Map([...before].map(([name, { email }]) => [name, email])),
    isDefaultEmpty: async () => !defaultAccount || (await deps.isEmpty(defaultAccount)),
    dataDirectory: deps.dataDirectory,
  });
  const tokens = new Map<string, string>();
  const kept = new Map(before);
  for (const drive of drives) {
    const { name, root } = drive;
    const account = await accountWith(drive, assigned.get(name) ?? '', deps);
    if (root !== '' && deps.purpose === 'serve') await deps.makeFolder(account, root);
    const token = await tokenFor(account, before.get(name), deps);
    tokens.set(name, token);
    kept.set(name, { email: account.email, token });
  }
  const text = textOf(kept);
  if (deps.purpose === 'serve' && text !== textOf(before)) await writeSecret(file, text);
  return tokens;
}

async function accountWith(
  { name, account }: EmbeddedDrive,
  email: string,
  { directory: { accounts }, dataDirectory, purpose }: DriveAccountDeps,
): Promise<Account> {
  const found = await accounts.withEmail(email);
  if (found) return found;
  if (account !== undefined)
    throw new DriveAccountError(
      `drive "${name}": ${dataDirectory} has no account ${account}; davgate service account list --data ${dataDirectory} lists the accounts, and account create adds one`,
    );
  const tested = purpose === 'test' ? await accounts.withEmail(DEFAULT_EMAIL) : undefined;
  if (tested) return tested;
  return await addAccount(accounts, { email, givenName: name, surname: 'Drive', mayDeletePermanently: true });
}

async function tokenFor(
  { id: accountId, email }: Account,
  kept: KeptDrive | undefined,
  { directory: { tokens }, credentials, nowMs }: DriveAccountDeps,
): Promise<string> {
  if (email === DEFAULT_EMAIL) return credentials.token;
  const isGood = kept !== undefined && (await tokens.bearer(nowMs, kept.token))?.account.id === accountId;
  return isGood
    ? kept.token
    : await tokens.grantAccess(nowMs, { accountId, appKey: credentials.appKey, scopes: SCOPES });
}

function textOf(kept: ReadonlyMap<string, KeptDrive>): string {
  return `${JSON.stringify(Object.fromEntries(kept), undefined, 2)}\n`;
}

/**
 * Returns the drives of earlier starts. A missing or damaged file counts as empty; the configuration must then name the
 * accounts again.
 */
function readKept(file: string): ReadonlyMap<string, KeptDrive> {
  try {
    const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
    const rows = Object.entries(typeof value === 'object' && value !== null ? value : {});
    return new Map(rows.filter((row): row is [string, KeptDrive] => isKept(row[1])));
  } catch {
    return new Map();
  }
}

function isKept(value: unknown): value is KeptDrive {
  if (typeof value !== 'object' || value === null || !('email' in value && 'token' in value)) return false;
  return typeof value.email === 'string' && typeof value.token === 'string';
}
