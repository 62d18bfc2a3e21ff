import { ConfigError } from '../../config/settings.ts';
import type { NamedGrant } from '../../service/admin/administration.ts';
import { tableOf } from '../table.ts';
import { type AdminCommand, JSON_OPTION, sayRows } from './command.ts';
import { hoursMs, requiredText, SCOPES_HELP, scopesLine, scopesOf, textOf, type Values } from './values.ts';

const create: AdminCommand = {
  name: 'token create',
  summary: 'create a token, and print it',
  options: [
    { flags: '--account <EMAIL>', help: 'the account that it gives access to' },
    { flags: '--app <KEY>', help: 'the app that it is for; default: the only app' },
    {
      flags: '--scopes <LIST>',
      help: `its scopes, separated by commas; default: all scopes of the app. ${SCOPES_HELP}`,
    },
    { flags: '--hours <N>', help: 'its lifetime; default: until it is revoked' },
    { flags: '--refresh', help: 'create a refresh token instead of an access token' },
  ],
  async run({ administration, values, say }) {
    const [appKey, requested] = [textOf(values, 'app'), scopesOf(values)];
    const lifetime = lifetimeOf(values);
    const { token, kind, scopes } = await administration.createToken({
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
  summary: 'list the consents of accounts to apps, newest first; the tokens themselves are not stored',
  options: [
    { flags: '--account <EMAIL>', help: 'only those of this account' },
    { flags: '--app <KEY>', help: 'only those of this app' },
    JSON_OPTION,
  ],
  async run(call) {
    const [email, appKey] = [textOf(call.values, 'account'), textOf(call.values, 'app')];
    const grants = await call.administration.grants({
      ...(email !== undefined && { email }),
      ...(appKey !== undefined && { appKey }),
    });
    sayRows(call, grants.map(jsonOf), () =>
      tableOf([['NUMBER', 'KIND', 'ACCOUNT', 'APP', 'SINCE', 'ENDS', 'SCOPES'], ...grants.map(rowOf)]),
    );
  },
};

const revoke: AdminCommand = {
  name: 'token revoke',
  summary: 'revoke the consent with this number in token list, and all its tokens',
  options: [],
  operand: 'NUMBER',
  async run({ administration, operand, say }) {
    await administration.revokeGrant(operand);
    say(`Revoked ${operand}.`);
  },
};

export const TOKEN_COMMANDS: readonly AdminCommand[] = [create, list, revoke];

function jsonOf(grant: NamedGrant) {
  const { createdMs, expiresMs } = grant;
  return {
    number: grant.number,
    kind: grant.hasRefreshToken ? 'refresh' : 'access',
    account: grant.email,
    app: grant.appName,
    scopes: grant.scopes,
    ...(createdMs !== undefined && { since: new Date(createdMs).toISOString() }),
    ...(expiresMs !== undefined && { ends: new Date(expiresMs).toISOString() }),
  };
}

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
