import { ConfigError } from '../../config/settings.ts';
import type { NamedGrant } from '../../service/admin/administration.ts';
import { tableOf } from '../table.ts';
import type { AdminCommand } from './command.ts';
import { hoursMs, requiredText, SCOPES_HELP, scopesLine, scopesOf, textOf, type Values } from './values.ts';

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;

const create: AdminCommand = {
  name: 'token create',
  usage: '--account EMAIL [--app KEY] [--scopes LIST] [--hours N | --refresh]',
  summary: 'create a token, and print it',
  help: `  --account EMAIL     the account that it gives access to
  --app KEY           the app that it is for; default: the only app
  --scopes LIST       its scopes, separated by commas; default: all scopes of the app.
${SCOPES_HELP}
  --hours N           its lifetime; default: until it is revoked
  --refresh           create a refresh token instead of an access token`,
  options: { account: TEXT, app: TEXT, scopes: TEXT, hours: TEXT, refresh: FLAG },
  operands: 0,
  run({ administration, values, say }) {
    const [appKey, requested] = [textOf(values, 'app'), scopesOf(values)];
    const lifetime = lifetimeOf(values);
    const { token, kind, scopes } = administration.createToken({
      email: requiredText(values, 'account'),
      ...(appKey !== undefined && { appKey }),
      ...(requested && { scopes: requested }),
      ...(lifetime !== undefined && { lifetime }),
    });
    say(`${kind} token  ${token}\n${scopesLine(scopes)}\nThe token is not shown again.`);
  },
};

function lifetimeOf(values: Values): 'refresh' | number | undefined {
  const lifetimeMs = hoursMs(values);
  if (values['refresh'] !== true) return lifetimeMs;
  if (lifetimeMs !== undefined)
    throw new ConfigError(
      '--hours and --refresh contradict each other: a refresh token is valid until it is revoked',
    );
  return 'refresh';
}

const list: AdminCommand = {
  name: 'token list',
  usage: '[--account EMAIL] [--app KEY]',
  summary: 'list the consents of accounts to apps, newest first; the tokens themselves are not stored',
  help: `  --account EMAIL     only those of this account
  --app KEY           only those of this app`,
  options: { account: TEXT, app: TEXT },
  operands: 0,
  run({ administration, values, say }) {
    const [email, appKey] = [textOf(values, 'account'), textOf(values, 'app')];
    const grants = administration.grants({
      ...(email !== undefined && { email }),
      ...(appKey !== undefined && { appKey }),
    });
    say(tableOf([['NUMBER', 'KIND', 'ACCOUNT', 'APP', 'SINCE', 'ENDS', 'SCOPES'], ...grants.map(rowOf)]));
  },
};

const revoke: AdminCommand = {
  name: 'token revoke',
  usage: 'NUMBER',
  summary: 'revoke the consent with this number in token list, and all its tokens',
  help: '',
  options: {},
  operands: 1,
  run({ administration, operand, say }) {
    administration.revokeGrant(operand);
    say(`Revoked ${operand}.`);
  },
};

export const TOKEN_COMMANDS: readonly AdminCommand[] = [create, list, revoke];

function rowOf(grant: NamedGrant): readonly string[] {
  return [
    String(grant.number),
    grant.hasRefreshToken ? 'refresh' : 'access',
    grant.email,
    grant.appName,
    grant.createdMs === undefined ? '-' : timeText(grant.createdMs),
    endOf(grant),
    grant.scopes.join(' '),
  ];
}

function endOf({ hasRefreshToken, tokens, expiresMs }: NamedGrant): string {
  if (hasRefreshToken || (tokens > 0 && expiresMs === undefined)) return 'when revoked';
  return expiresMs === undefined ? 'ended' : timeText(expiresMs);
}

function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')}Z`;
}
