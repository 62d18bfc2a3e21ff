import { ConfigError } from '../../config/settings.ts';
import type { App } from '../../service/accounts/apps.ts';
import type { Grant } from '../../service/accounts/grants.ts';
import { accountWith } from './account-commands.ts';
import { appWith } from './app-commands.ts';
import { type AdminCommand, type Surroundings, table } from './command.ts';
import { hoursMs, requiredText, SCOPES_HELP, scopesLine, scopesOf, textOf, type Values } from './values.ts';

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;

const create: AdminCommand = {
  name: 'token create',
  usage: '--account EMAIL [--app KEY] [--scopes LIST] [--hours N | --refresh]',
  summary: 'make a token, and print it',
  help: `  --account EMAIL     whose files it opens
  --app KEY           the app it is for; needed where there are several
  --scopes LIST       what it may do: names between commas; default: all that the app may.
${SCOPES_HELP}
  --hours N           it ends after so long; default: it lives until it is revoked
  --refresh           a refresh token in place of an access token`,
  options: { account: TEXT, app: TEXT, scopes: TEXT, hours: TEXT, refresh: FLAG },
  operands: 0,
  run(on, values) {
    const { tokens, grants, nowMs, say } = on;
    const account = accountWith(on, requiredText(values, 'account'));
    const app = appOf(on, values);
    const scopes = scopesOf(values) ?? app.scopes;
    const tooMuch = scopes.filter((scope) => !app.scopes.includes(scope));
    if (tooMuch.length > 0)
      throw new ConfigError(
        `--scopes ${tooMuch.join(',')}: the app ${app.name} may not be granted that; davgate service app set changes it`,
      );
    if (!grants.mayLink(nowMs, app, account.id))
      throw new ConfigError(
        `the app ${app.name} has as many users as its status (${app.status}) allows; davgate service app set --status changes it`,
      );
    const consent = { accountId: account.id, appKey: app.key, scopes };
    const lifetimeMs = hoursMs(values);
    const isRefresh = values['refresh'] === true;
    if (isRefresh && lifetimeMs !== undefined)
      throw new ConfigError('--hours and --refresh contradict each other: a refresh token does not end');
    const token = isRefresh
      ? tokens.grantRefreshable(nowMs, consent)
      : tokens.grantAccess(nowMs, consent, lifetimeMs && nowMs + lifetimeMs);
    const kind = isRefresh ? 'refresh' : 'access';
    say(`${kind} token  ${token}\n${scopesLine(scopes)}\nThe token is not shown again.`);
  },
};

const list: AdminCommand = {
  name: 'token list',
  usage: '[--account EMAIL] [--app KEY]',
  summary: 'what accounts allow apps, newest first; tokens themselves are not known any more',
  help: `  --account EMAIL     only of this account
  --app KEY           only of this app`,
  options: { account: TEXT, app: TEXT },
  operands: 0,
  run(on, values) {
    const [email, key] = [textOf(values, 'account'), textOf(values, 'app')];
    const accountId = email === undefined ? undefined : accountWith(on, email).id;
    if (key !== undefined) appWith(on, key);
    const rows = on.grants
      .all()
      .filter((grant) => (accountId ?? grant.accountId) === grant.accountId)
      .filter((grant) => (key ?? grant.appKey) === grant.appKey)
      .map((grant) => rowOf(on, grant));
    on.say(table([['NUMBER', 'KIND', 'ACCOUNT', 'APP', 'SINCE', 'ENDS', 'SCOPES'], ...rows]));
  },
};

const revoke: AdminCommand = {
  name: 'token revoke',
  usage: 'NUMBER',
  summary: 'end a token of that number in token list, and all that came of the same consent',
  help: '',
  options: {},
  operands: 1,
  run({ grants, say }, _values, number) {
    const isNumber = /^\d{1,15}$/.test(number);
    if (!isNumber || !grants.revoke(Number(number)))
      throw new ConfigError(`${number} is the number of no token; davgate service token list shows them`);
    say(`Revoked ${number}.`);
  },
};

export const TOKEN_COMMANDS: readonly AdminCommand[] = [create, list, revoke];

function appOf(on: Surroundings, values: Values): App {
  const key = textOf(values, 'app');
  if (key !== undefined) return appWith(on, key);
  const [only, another] = on.apps.all();
  if (!only) throw new ConfigError('there is no app yet; davgate service app create makes one');
  if (another)
    throw new ConfigError('--app is missing, and there are several; davgate service app list shows them');
  return only;
}

function rowOf({ accounts, apps }: Surroundings, grant: Grant): readonly string[] {
  return [
    String(grant.number),
    grant.hasRefreshToken ? 'refresh' : 'access',
    accounts.withId(grant.accountId).email,
    apps.withKey(grant.appKey)?.name ?? grant.appKey,
    grant.createdMs === undefined ? '-' : timeText(grant.createdMs),
    endOf(grant),
    grant.scopes.join(' '),
  ];
}

function endOf({ hasRefreshToken, tokens, expiresMs }: Grant): string {
  if (hasRefreshToken || (tokens > 0 && expiresMs === undefined)) return 'when revoked';
  return expiresMs === undefined ? 'ended' : timeText(expiresMs);
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')}Z`;
}
