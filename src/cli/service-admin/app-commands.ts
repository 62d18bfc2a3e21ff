import { ConfigError } from '../../config/settings.ts';
import { LINKED_USERS_MAX, type NewApp } from '../../service/accounts/apps.ts';
import { tableOf } from '../table.ts';
import type { AdminCommand } from './command.ts';
import {
  redirectUrisOf,
  requiredText,
  SCOPES_HELP,
  scopesLine,
  scopesOf,
  statusOf,
  textOf,
  type Values,
} from './values.ts';

const TEXT = { type: 'string' } as const;
const TEXTS = { type: 'string', multiple: true } as const;
const FLAG = { type: 'boolean' } as const;

const STATUS_HELP = `  --status STATUS     development: at most 50 accounts can link it; applied (production is applied for): at most 500;
                      production: any number`;

const create: AdminCommand = {
  name: 'app create',
  usage: '--name NAME --scopes LIST [--redirect-uri URI]... [--status STATUS]',
  summary: 'register an app, and print its key and secret',
  help: `  --name NAME         the name on the page that asks people for consent
  --scopes LIST       the scopes that it may be granted, separated by commas, or all.
${SCOPES_HELP}
  --redirect-uri URI  an address that may receive its authorization codes; repeatable. Without one, the page shows the
                      code for the person to copy
${STATUS_HELP}. Default development`,
  options: { name: TEXT, scopes: TEXT, 'redirect-uri': TEXTS, status: TEXT },
  operands: 0,
  mayCreate: true,
  run({ administration, values, say }) {
    const scopes = scopesOf(values);
    if (!scopes)
      throw new ConfigError('--scopes is missing; list the scopes that the app may be granted, or write all');
    const { app, secret } = administration.createApp({
      name: requiredText(values, 'name'),
      scopes,
      redirectUris: redirectUrisOf(values),
      status: statusOf(values) ?? 'development',
    });
    say(
      `app key     ${app.key}\napp secret  ${secret}\n${scopesLine(scopes)}\nThe secret is not shown again.`,
    );
  },
};

const list: AdminCommand = {
  name: 'app list',
  usage: '',
  summary: 'list all apps',
  help: '',
  options: {},
  operands: 0,
  run({ administration, say }) {
    const rows = administration
      .apps()
      .map((app) => [app.key, app.name, app.status, String(administration.linkedUsers(app))]);
    say(tableOf([['KEY', 'NAME', 'STATUS', 'USERS'], ...rows]));
  },
};

const show: AdminCommand = {
  name: 'app show',
  usage: 'KEY',
  summary: 'show the settings of an app, except its secret',
  help: '',
  options: {},
  operands: 1,
  run({ administration, operand, say }) {
    const app = administration.app(operand);
    const users = administration.linkedUsers(app);
    const most = LINKED_USERS_MAX[app.status];
    say(
      tableOf([
        ['key', app.key],
        ['name', app.name],
        ['status', app.status],
        ['users', Number.isFinite(most) ? `${users} of at most ${most}` : String(users)],
        ['scopes', app.scopes.join(' ')],
        ...(app.redirectUris.length > 0 ? app.redirectUris : ['none']).map((uri) => ['redirect URI', uri]),
      ]),
    );
  },
};

const set: AdminCommand = {
  name: 'app set',
  usage: 'KEY [--name NAME] [--scopes LIST] [--status STATUS] [--redirect-uri URI]... [--new-secret]',
  summary: 'change an app',
  help: `  --name NAME         the name on the page that asks people for consent
  --scopes LIST       replaces its scopes; tokens lose the scopes that are not listed.
${SCOPES_HELP}
  --redirect-uri URI  replaces all its redirect URIs; repeatable
  --no-redirect-uris  removes all its redirect URIs
${STATUS_HELP}
  --new-secret        replaces its secret and prints the new one; the old one is invalid at once`,
  options: {
    name: TEXT,
    scopes: TEXT,
    status: TEXT,
    'redirect-uri': TEXTS,
    'no-redirect-uris': FLAG,
    'new-secret': FLAG,
  },
  operands: 1,
  run({ administration, values, operand, say }) {
    const change = changeOf(values);
    const hasNewSecret = values['new-secret'] === true;
    const { app, secret } = administration.changeApp(operand, change, { hasNewSecret });
    say(`Changed the app ${app.name}.`);
    if (change.scopes) say(scopesLine(app.scopes));
    if (secret !== undefined) say(`app secret  ${secret}\nThe secret is not shown again.`);
  },
};

function changeOf(values: Values): Partial<NewApp> {
  const [name, scopes, status] = [textOf(values, 'name'), scopesOf(values), statusOf(values)];
  const redirectUris = redirectUrisOf(values);
  const isNone = values['no-redirect-uris'] === true;
  if (isNone && redirectUris.length > 0)
    throw new ConfigError('--redirect-uri and --no-redirect-uris contradict each other; give one of them');
  return {
    ...(name !== undefined && { name }),
    ...(scopes && { scopes }),
    ...(status && { status }),
    ...((isNone || redirectUris.length > 0) && { redirectUris }),
  };
}

const remove: AdminCommand = {
  name: 'app remove',
  usage: 'KEY',
  summary: 'remove an app, and revoke all its tokens',
  help: '',
  options: {},
  operands: 1,
  run({ administration, operand, say }) {
    const { name } = administration.removeApp(operand);
    say(`Removed the app ${name} and all its tokens.`);
  },
};

export const APP_COMMANDS: readonly AdminCommand[] = [create, list, show, set, remove];
