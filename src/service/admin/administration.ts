import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../util/clock.ts';
import type { Account, AccountChange, NewAccount } from '../accounts/accounts.ts';
import { type App, LINKED_USERS_MAX, type NewApp, redirectUriProblem } from '../accounts/apps.ts';
import type { Grant } from '../accounts/grants.ts';
import { addAccount } from '../accounts/provision.ts';
import type { Scope } from '../accounts/scopes.ts';
import { hashOfPassword, newPassword } from '../accounts/secrets.ts';
import type { Directory } from '../directory/directory.ts';
import { ACCOUNTS_FILE, accountsFailure } from '../directory/sqlite/database.ts';
import { openSqliteDirectory } from '../directory/sqlite/sqlite-directory.ts';

/** An administrator's request that cannot be carried out; `message` says why and what to do. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
}

/** The fields of a new account. The name defaults to the local part of the address. */
export type AccountToCreate = Pick<NewAccount, 'email'> &
  Omit<AccountChange, 'passwordHash'> & {
    /** The name of its team, which is created with its first member. */
    readonly team?: string;
  };

/** A password: the given text, or a new random one if `text` is absent. */
export interface PasswordChoice {
  readonly text?: string;
}

/** The result of a change that may have set a random password, which is not stored and cannot be read again. */
export interface ChangedAccount {
  readonly account: Account;
  /** Present if a random password was set. */
  readonly newPassword?: string;
}

export interface TokenRequest {
  readonly email: string;
  /** Default: the only app. */
  readonly appKey?: string;
  /** Default: all scopes of the app. */
  readonly scopes?: readonly Scope[];
  /** `refresh`: a refresh token. A number: an access token with this lifetime, in ms. Default: no expiry. */
  readonly lifetime?: 'refresh' | number;
}

export interface CreatedToken {
  readonly token: string;
  readonly kind: 'access' | 'refresh';
  readonly scopes: readonly Scope[];
}

/** A consent with the names of its account and app. */
export interface NamedGrant extends Grant {
  readonly email: string;
  readonly appName: string;
}

/** Minimum length of a chosen password. The sign-in page allows ten guesses a minute. */
const PASSWORD_CHARACTERS_MIN = 8;

/**
 * The operations of an administrator on accounts, apps and tokens. They work beside a running service, which notices
 * their effects at its next call. Each throws `AdminError` if it cannot be carried out, and then changes nothing.
 */
export class Administration {
  readonly #directory: Directory;
  readonly #now: () => number;

  constructor(directory: Directory, now: () => number) {
    this.#directory = directory;
    this.#now = now;
  }

  async createAccount(
    { email, team, ...fields }: AccountToCreate,
    choice: PasswordChoice,
  ): Promise<ChangedAccount> {
    const { accounts } = this.#directory;
    if (!/^[^\s@]+@[^\s@]+$/.test(email))
      throw new AdminError(`${email}: not an email address; write it like ann@example.org`);
    if (await accounts.withEmail(email))
      throw new AdminError(
        `${email} already has an account; davgate service account set ${email} changes it`,
      );
    const password = passwordOf(choice);
    const passwordHash = await hashOfPassword(password.text);
    const defaults = { givenName: email.split('@')[0] ?? '', surname: '', mayDeletePermanently: false };
    const account = await addAccount(accounts, { email, ...defaults, ...fields, passwordHash }, team);
    return { account, ...(password.isNew && { newPassword: password.text }) };
  }

  /** Returns all accounts, sorted by address. */
  async accounts(): Promise<readonly Account[]> {
    return await this.#directory.accounts.all();
  }

  async account(email: string): Promise<Account> {
    const account = await this.#directory.accounts.withEmail(email);
    if (!account)
      throw new AdminError(`${email} has no account; davgate service account list lists the accounts`);
    return account;
  }

  /** Returns the names of the apps that the account has given a consent. */
  async appNamesOf({ id }: Account): Promise<readonly string[]> {
    const nameOf = await this.#appNames();
    const grants = (await this.#directory.grants.all()).filter(({ accountId }) => accountId === id);
    return [...new Set(grants.map(({ appKey }) => nameOf(appKey)))];
  }

  /** Changes an account; `choice` also replaces its password, which ends the sessions of signed-in browsers. */
  async changeAccount(
    email: string,
    change: Omit<AccountChange, 'passwordHash'>,
    choice?: PasswordChoice,
  ): Promise<ChangedAccount> {
    const { id, team } = await this.account(email);
    if (team && change.limitBytes !== undefined)
      throw new AdminError(`${email} has no quota of its own: all members share the space of ${team.name}`);
    if (Object.keys(change).length === 0 && !choice)
      throw new AdminError('account set: nothing to change; --help lists the options');
    const password = choice && passwordOf(choice);
    const passwordHash = password && (await hashOfPassword(password.text));
    await this.#directory.accounts.change(id, { ...change, ...(passwordHash && { passwordHash }) });
    return { account: await this.account(email), ...(password?.isNew && { newPassword: password.text }) };
  }

  /** Removes an account with its tokens and links. A running service deletes the files afterwards. */
  async removeAccount(email: string): Promise<Account> {
    const account = await this.account(email);
    await this.#directory.accounts.remove(account.id);
    return account;
  }

  /** Registers an app. Its secret is not stored and cannot be read again. */
  async createApp(app: NewApp): Promise<{ readonly app: App; readonly secret: string }> {
    checkRedirectUris(app.redirectUris);
    return await this.#directory.apps.add(app);
  }

  /** Returns all apps, sorted by name. */
  async apps(): Promise<readonly App[]> {
    return await this.#directory.apps.all();
  }

  async app(key: string): Promise<App> {
    const app = await this.#directory.apps.withKey(key);
    if (!app) throw new AdminError(`no app has the key ${key}; davgate service app list lists the apps`);
    return app;
  }

  /** Returns the number of accounts that have linked the app. */
  async linkedUsers({ key }: App): Promise<number> {
    return await this.#directory.grants.linkedUsers(this.#now(), key);
  }

  /** Changes an app. Returns its new secret if `hasNewSecret` asks for one; the old secret is then invalid. */
  async changeApp(
    key: string,
    change: Partial<NewApp>,
    { hasNewSecret }: { readonly hasNewSecret: boolean },
  ): Promise<{ readonly app: App; readonly secret?: string }> {
    const { apps } = this.#directory;
    await this.app(key);
    if (Object.keys(change).length === 0 && !hasNewSecret)
      throw new AdminError('app set: nothing to change; --help lists the options');
    checkRedirectUris(change.redirectUris ?? []);
    await apps.change(key, change);
    const secret = hasNewSecret ? await apps.renewSecret(key) : undefined;
    return { app: await this.app(key), ...(secret !== undefined && { secret }) };
  }

  /** Removes an app with all its tokens. */
  async removeApp(key: string): Promise<App> {
    const app = await this.app(key);
    await this.#directory.apps.remove(key);
    return app;
  }

  /** Creates a token. It is not stored and cannot be read again. */
  async createToken({ email, appKey, scopes: requested, lifetime }: TokenRequest): Promise<CreatedToken> {
    const { tokens, grants } = this.#directory;
    const nowMs = this.#now();
    const { id: accountId } = await this.account(email);
    const app = appKey === undefined ? await this.#onlyApp() : await this.app(appKey);
    const scopes = requested ?? app.scopes;
    const excess = scopes.filter((scope) => !app.scopes.includes(scope));
    if (excess.length > 0)
      throw new AdminError(
        `the app ${app.name} may not be granted ${excess.join(', ')}; davgate service app set ${app.key} --scopes changes that`,
      );
    if (!(await grants.mayLink(nowMs, app, accountId)))
      throw new AdminError(
        `the app ${app.name} has as many users as its status (${app.status}) allows, ${LINKED_USERS_MAX[app.status]}; davgate service app set ${app.key} --status changes the status`,
      );
    const consent = { accountId, appKey: app.key, scopes };
    if (lifetime === 'refresh')
      return { token: await tokens.grantRefreshable(nowMs, consent), kind: 'refresh', scopes };
    const expiresMs = lifetime === undefined ? undefined : nowMs + lifetime;
    return { token: await tokens.grantAccess(nowMs, consent, expiresMs), kind: 'access', scopes };
  }

  /** Returns the consents, newest first, of one account or of one app if given. */
  async grants({
    email,
    appKey,
  }: {
    readonly email?: string;
    readonly appKey?: string;
  }): Promise<readonly NamedGrant[]> {
    const account = email === undefined ? undefined : await this.account(email);
    const app = appKey === undefined ? undefined : await this.app(appKey);
    const appName = await this.#appNames();
    const emails = new Map((await this.accounts()).map((one) => [one.id, one.email]));
    return (await this.#directory.grants.all())
      .filter((grant) => !account || grant.accountId === account.id)
      .filter((grant) => !app || grant.appKey === app.key)
      .map((grant) => ({
        ...grant,
        email: emails.get(grant.accountId) ?? grant.accountId,
        appName: appName(grant.appKey),
      }));
  }

  /** Revokes the consent with this number, and all its tokens. */
  async revokeGrant(number: string): Promise<void> {
    const isNumber = /^\d{1,15}$/.test(number);
    if (!isNumber || !(await this.#directory.grants.revoke(Number(number))))
      throw new AdminError(`no token has the number ${number}; davgate service token list lists the tokens`);
  }

  /** Returns a function that returns the name of the app with a key. */
  async #appNames(): Promise<(key: string) => string> {
    const names = new Map((await this.apps()).map(({ key, name }) => [key, name]));
    return (key) => names.get(key) ?? key;
  }

  async #onlyApp(): Promise<App> {
    const [only, another] = await this.apps();
    if (!only) throw new AdminError('there is no app; create one with davgate service app create');
    if (another)
      throw new AdminError(
        'there are several apps; name one with --app (davgate service app list lists them)',
      );
    return only;
  }
}

function passwordOf({ text }: PasswordChoice): { readonly text: string; readonly isNew: boolean } {
  if (text === undefined) return { text: newPassword(), isNew: true };
  if (text.length < PASSWORD_CHARACTERS_MIN)
    throw new AdminError(
      `the password is too short; it must have at least ${PASSWORD_CHARACTERS_MIN} characters`,
    );
  return { text, isNew: false };
}

function checkRedirectUris(uris: readonly string[]): void {
  for (const uri of uris) {
    const problem = redirectUriProblem(uri);
    if (problem) throw new AdminError(`the redirect URI ${uri} ${problem}`);
  }
}

/** Where the accounts of a service are: in its data directory or, with `metadata`, in a PostgreSQL database. */
export interface AdministeredStore {
  readonly dataDirectory: string;
  readonly metadata?: string;
}

/**
 * Opens the accounts of a service for the time of `work`. Unless `mayCreate`, throws `AdminError` for a directory without
 * a service. Throws `DataDirectoryError` or `PostgresError` if the accounts cannot be read or written.
 */
export async function administer<Result>(
  { dataDirectory, metadata }: AdministeredStore,
  { mayCreate }: { readonly mayCreate: boolean },
  work: (administration: Administration) => Result | Promise<Result>,
): Promise<Result> {
  if (metadata !== undefined) {
    const { withSharedDirectory } = await import('../directory/postgres/postgres-directory.ts');
    return await withSharedDirectory(metadata, async (directory) => await work(administrationOf(directory)));
  }
  const file = join(dataDirectory, ACCOUNTS_FILE);
  if (!mayCreate && !existsSync(file))
    throw new AdminError(
      `${dataDirectory} contains no storage service; name the service's directory with --data DIR`,
    );
  const { directory, close } = openSqliteDirectory(dataDirectory);
  try {
    return await work(administrationOf(directory));
  } catch (error) {
    throw accountsFailure(error, file);
  } finally {
    await close();
  }
}

function administrationOf(directory: Directory): Administration {
  return new Administration(directory, () => systemClock.now());
}
