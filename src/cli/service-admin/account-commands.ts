import { ConfigError } from '../../config/settings.ts';
import type { Account, AccountChange } from '../../service/accounts/accounts.ts';
import { addAccount } from '../../service/accounts/provision.ts';
import { hashOfPassword, newPassword } from '../../service/accounts/secrets.ts';
import { sizeText } from '../../util/size-text.ts';
import { type AdminCommand, type Surroundings, table } from './command.ts';
import { quotaBytes, textOf, type Values, yesOrNo } from './values.ts';

const TEXT = { type: 'string' } as const;
const FLAG = { type: 'boolean' } as const;

const OPTIONS = {
  'given-name': TEXT,
  surname: TEXT,
  quota: TEXT,
  'permanent-delete': TEXT,
  'password-stdin': FLAG,
} as const;

const HELP = `  --given-name NAME, --surname NAME
                      of its owner, for programs that show it
  --quota SIZE        how much its files may hold: 500MB, 20GiB, 2TB
  --permanent-delete yes|no
                      whether its files can be deleted for ever through the API
  --password-stdin    read the password from standard input`;

const create: AdminCommand = {
  name: 'account create',
  usage: 'EMAIL [--given-name NAME] [--surname NAME] [--quota SIZE] [--password-stdin]',
  summary: 'make an account, and print its password unless one is given',
  help: `${HELP}; else one is made up and printed
Defaults: the name is the address, 2TiB (or what the disk holds), no permanent deletion.`,
  options: OPTIONS,
  operands: 1,
  begins: true,
  async run(on, values, email) {
    if (!/^[^\s@]+@[^\s@]+$/.test(email))
      throw new ConfigError(`${email}: no address; write it like ann@example.org`);
    if (on.accounts.withEmail(email)) throw new ConfigError(`${email} has an account already`);
    const change = changeOf(values);
    const password = await passwordOf(on, values);
    addAccount(on.accounts, {
      email,
      givenName: email.split('@')[0] ?? '',
      surname: '',
      mayDeletePermanently: false,
      ...change,
      passwordHash: await hashOfPassword(password.text),
    });
    on.say(`Made the account ${email}.`);
    if (password.isNew) on.say(`password  ${password.text}\nThe password is not shown again.`);
  },
};

const list: AdminCommand = {
  name: 'account list',
  usage: '',
  summary: 'all accounts',
  help: '',
  options: {},
  operands: 0,
  run({ accounts, say }) {
    const rows = accounts.all().map((account) => [account.email, nameOf(account), quotaText(account)]);
    say(table([['EMAIL', 'NAME', 'QUOTA'], ...rows]));
  },
};

const show: AdminCommand = {
  name: 'account show',
  usage: 'EMAIL',
  summary: 'all that is known of an account, but for its password',
  help: '',
  options: {},
  operands: 1,
  run(on, _values, email) {
    const account = accountWith(on, email);
    const apps = new Set(
      on.grants
        .all()
        .filter(({ accountId }) => accountId === account.id)
        .map(({ appKey }) => on.apps.withKey(appKey)?.name ?? appKey),
    );
    on.say(
      table([
        ['email', account.email],
        ['name', nameOf(account)],
        ['account id', account.id],
        ['namespace', account.namespace],
        ['quota', quotaText(account)],
        ['permanent deletion', account.mayDeletePermanently ? 'yes' : 'no'],
        ['password', account.passwordHash ? 'set' : 'none: it cannot sign in'],
        ['apps', apps.size > 0 ? [...apps].join(', ') : 'none'],
      ]),
    );
  },
};

const set: AdminCommand = {
  name: 'account set',
  usage: 'EMAIL [--password-stdin | --new-password] [--quota SIZE] [--permanent-delete yes|no]',
  summary: 'change an account',
  help: `${HELP}
  --new-password      make and print another password. With either, browsers that are signed in have to sign in again`,
  options: { ...OPTIONS, 'new-password': FLAG },
  operands: 1,
  async run(on, values, email) {
    const account = accountWith(on, email);
    const change = changeOf(values);
    const isNewPassword = values['new-password'] === true || values['password-stdin'] === true;
    if (Object.keys(change).length === 0 && !isNewPassword)
      throw new ConfigError('account set: say what to change; --help lists what can be');
    const password = isNewPassword ? await passwordOf(on, values) : undefined;
    on.accounts.change(account.id, {
      ...change,
      ...(password && { passwordHash: await hashOfPassword(password.text) }),
    });
    on.say(`Changed the account ${account.email}.`);
    if (password?.isNew) on.say(`password  ${password.text}\nThe password is not shown again.`);
  },
};

const remove: AdminCommand = {
  name: 'account remove',
  usage: 'EMAIL --delete-files',
  summary: 'remove an account with its tokens, links and files, for ever',
  help: `  --delete-files      says that you mean it. Tokens and links end at once; a service deletes the files within an hour
                      of its running, or when it is started again`,
  options: { 'delete-files': FLAG },
  operands: 1,
  run(on, values, email) {
    const account = accountWith(on, email);
    if (values['delete-files'] !== true)
      throw new ConfigError(
        `account remove deletes all files of ${account.email} for ever: say --delete-files if you mean it`,
      );
    on.accounts.remove(account.id);
    on.say(`Removed the account ${account.email}.`);
  },
};

export const ACCOUNT_COMMANDS: readonly AdminCommand[] = [create, list, show, set, remove];

/** Throws `ConfigError` where no account has this address. */
export function accountWith({ accounts }: Surroundings, email: string): Account {
  const account = accounts.withEmail(email);
  if (!account)
    throw new ConfigError(`${email} has no account here; davgate service account list shows them`);
  return account;
}

function changeOf(values: Values): AccountChange {
  const [givenName, surname] = [textOf(values, 'given-name'), textOf(values, 'surname')];
  const [limitBytes, mayDeletePermanently] = [quotaBytes(values), yesOrNo(values, 'permanent-delete')];
  return {
    ...(givenName !== undefined && { givenName }),
    ...(surname !== undefined && { surname }),
    ...(limitBytes !== undefined && { limitBytes }),
    ...(mayDeletePermanently !== undefined && { mayDeletePermanently }),
  };
}

/** Fewer are guessed by a program that has a year of minutes with ten guesses each. */
const PASSWORD_MIN_CHARACTERS = 8;

async function passwordOf(
  { readPassword }: Surroundings,
  values: Values,
): Promise<{ readonly text: string; readonly isNew: boolean }> {
  if (values['password-stdin'] !== true) return { text: newPassword(), isNew: true };
  if (values['new-password'] === true)
    throw new ConfigError('--password-stdin and --new-password contradict each other');
  const text = await readPassword();
  if (text.length < PASSWORD_MIN_CHARACTERS)
    throw new ConfigError(`the password must have at least ${PASSWORD_MIN_CHARACTERS} characters`);
  return { text, isNew: false };
}

function nameOf({ givenName, surname }: Account): string {
  return `${givenName} ${surname}`.trim();
}

function quotaText({ limitBytes }: Account): string {
  return limitBytes === undefined ? 'as made' : sizeText(limitBytes);
}
