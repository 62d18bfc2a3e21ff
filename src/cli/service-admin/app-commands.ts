import { ConfigError } from '../../config/settings.ts';
import { LINKED_USERS_MAX, type NewApp } from '../../service/accounts/apps.ts';
import { tableOf } from '../table.ts';
import { type AdminCommand, JSON_OPTION, sayRows } from './command.ts';
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

const NAME = { flags: '--name <NAME>', help: 'the name on the page that asks people for consent' } as const;

const STATUS = {
  flags: '--status <STATUS>',
  help: 'development (default): at most 50 accounts can link it; applied (production is applied for): at most 500; production: any number',
} as const;

const create: AdminCommand = {
  name: 'app create',
  summary: 'register an app, and print its key and secret',
  options: [
    NAME,
    {
      flags: '--scopes <LIST>',
      help: `the scopes that it may be granted, separated by commas, or all. ${SCOPES_HELP}`,
    },
    {
      flags: '--redirect-uri <URI>',
      help: 'an address that may receive its authorization codes; repeatable. Without one, the page shows the code for the person to copy',
      isRepeatable: true,
    },
    STATUS,
  ],
  mayCreate: true,
  async run({ administration, values, say }) {
    const scopes = scopesOf(values);
    if (!scopes)
      throw new ConfigError('--scopes is missing; list the scopes that the app may be granted, or write all');
    const { app, secret } = await administration.createApp({
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
  summary: 'list all apps',
  options: [JSON_OPTION],
  async run(call) {
    const rows: { key: string; name: string; status: string; users: number }[] = [];
    for (const app of await call.administration.apps()) {
      const { key, name, status } = app;
      rows.push({ key, name, status, users: await call.administration.linkedUsers(app) });
    }
    sayRows(call, rows, () =>
      tableOf([
        ['KEY', 'NAME', 'STATUS', 'USERS'],
        ...rows.map(({ key, name, status, users }) => [key, name, status, String(users)]),
      ]),
    );
  },
};

const show: AdminCommand = {
  name: 'app show',
  summary: 'show the settings of an app, except its secret',
  options: [JSON_OPTION],
  operand: 'KEY',
  async run(call) {
    const app = await call.administration.app(call.operand);
    const users = await call.administration.linkedUsers(app);
    const most = LINKED_USERS_MAX[app.status];
    const { key, name, status, scopes, redirectUris } = app;
    sayRows(call, { key, name, status, users, scopes, redirectUris }, () =>
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
  summary: 'change an app',
  options: [
    NAME,
    {
      flags: '--scopes <LIST>',
      help: `replaces its scopes; tokens lose the scopes that are not listed. ${SCOPES_HELP}`,
    },
    { flags: '--redirect-uri <URI>', help: 'replaces all its redirect URIs; repeatable', isRepeatable: true },
    { flags: '--no-redirect-uris', help: 'removes all its redirect URIs' },
    STATUS,
    {
      flags: '--new-secret',
      help: 'replaces its secret and prints the new one; the old one is invalid at once',
    },
  ],
  operand: 'KEY',
  async run({ administration, values, operand, say }) {
    const change = changeOf(values);
    const hasNewSecret = values['new-secret'] === true;
    const { app, secret } = await administration.changeApp(operand, change, { hasNewSecret });
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
  summary: 'remove an app, and revoke all its tokens',
  options: [],
  operand: 'KEY',
  async run({ administration, operand, say }) {
    const { name } = await administration.removeApp(operand);
    say(`Removed the app ${name} and all its tokens.`);
  },
};

export const APP_COMMANDS: readonly AdminCommand[] = [create, list, show, set, remove];
