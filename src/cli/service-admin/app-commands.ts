import { ConfigError } from '../../config/settings.ts';
import { type App, LINKED_USERS_MAX, type NewApp } from '../../service/accounts/apps.ts';
import { type AdminCommand, type Surroundings, table } from './command.ts';
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
  help: `  --name NAME         what people are shown when it asks them for access
  --scopes LIST       what it may be granted: names between commas, or all.
${SCOPES_HELP}
  --redirect-uri URI  where its codes may be sent; repeatable. Without one, codes are shown to be copied
${STATUS_HELP}. Default development`,
  options: { name: TEXT, scopes: TEXT, 'redirect-uri': TEXTS, status: TEXT },
  operands: 0,
  begins: true,
  run({ apps, say }, values) {
    const scopes = scopesOf(values);
    if (!scopes) throw new ConfigError('--scopes is missing: say what the app may be granted, or all');
    const { app, secret } = apps.add({
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
  summary: 'all apps',
  help: '',
  options: {},
  operands: 0,
  run({ apps, grants, nowMs, say }) {
    const rows = apps
      .all()
      .map((app) => [app.key, app.name, app.status, String(grants.linkedUsers(nowMs, app.key))]);
    say(table([['KEY', 'NAME', 'STATUS', 'USERS'], ...rows]));
  },
};

const show: AdminCommand = {
  name: 'app show',
  usage: 'KEY',
  summary: 'all that is known of an app, but for its secret',
  help: '',
  options: {},
  operands: 1,
  run(on, _values, key) {
    const app = appWith(on, key);
    const users = on.grants.linkedUsers(on.nowMs, key);
    const most = LINKED_USERS_MAX[app.status];
    on.say(
      table([
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
  help: `  --name NAME         what people are shown
  --scopes LIST       in place of those it had: its tokens can do no more than these.
${SCOPES_HELP}
  --redirect-uri URI  in place of all it had; repeatable
  --no-redirect-uris  none any more
${STATUS_HELP}
  --new-secret        make and print another secret; the old one is no good any more`,
  options: {
    name: TEXT,
    scopes: TEXT,
    status: TEXT,
    'redirect-uri': TEXTS,
    'no-redirect-uris': FLAG,
    'new-secret': FLAG,
  },
  operands: 1,
  run(on, values, key) {
    const { apps, say } = on;
    const app = appWith(on, key);
    const change = changeOf(values);
    const isNewSecret = values['new-secret'] === true;
    if (Object.keys(change).length === 0 && !isNewSecret)
      throw new ConfigError('app set: say what to change; --help lists what can be');
    apps.change(key, change);
    say(`Changed ${app.name}.`);
    if (change.scopes) say(scopesLine(change.scopes));
    if (isNewSecret) say(`app secret  ${apps.renewSecret(key)}\nThe secret is not shown again.`);
  },
};

function changeOf(values: Values): Partial<NewApp> {
  const [name, scopes, status] = [textOf(values, 'name'), scopesOf(values), statusOf(values)];
  const redirectUris = redirectUrisOf(values);
  const isNone = values['no-redirect-uris'] === true;
  if (isNone && redirectUris.length > 0)
    throw new ConfigError('--redirect-uri and --no-redirect-uris contradict each other');
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
  summary: 'remove an app; all its tokens end',
  help: '',
  options: {},
  operands: 1,
  run(on, _values, key) {
    const app = appWith(on, key);
    on.apps.remove(key);
    on.say(`Removed ${app.name} and all its tokens.`);
  },
};

export const APP_COMMANDS: readonly AdminCommand[] = [create, list, show, set, remove];

/** Throws `ConfigError` where no app has this key. */
export function appWith({ apps }: Surroundings, key: string): App {
  const app = apps.withKey(key);
  if (!app) throw new ConfigError(`${key} is the key of no app; davgate service app list shows them`);
  return app;
}
