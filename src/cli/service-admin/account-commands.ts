import { ConfigError } from '../../config/settings.ts';
import type { Account, AccountChange } from '../../service/accounts/accounts.ts';
import type { ChangedAccount, PasswordChoice } from '../../service/admin/administration.ts';
import { sizeText } from '../../util/size-text.ts';
import { tableOf } from '../table.ts';
import type { AdminCall, AdminCommand } from './command.ts';
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
                      the owner's name, which some clients show
  --quota SIZE        maximum size of the account's files: 500MB, 20GiB, 2TB
  --permanent-delete yes|no
                      whether the API may delete the account's files permanently
  --password-stdin    read the password from standard input`;

const create: AdminCommand = {
  name: 'account create',
  usage: 'EMAIL [--given-name NAME] [--surname NAME] [--quota SIZE] [--password-stdin]',
  summary: 'create an account, and print its password unless one is given',
  help: `${HELP}.
                      Without it, a random password is set and printed
Defaults: the local part of EMAIL as the name, 2 TiB (or the size of the disk), no permanent deletion.`,
  options: OPTIONS,
  operands: 1,
  mayCreate: true,
  async run(call) {
    const { administration, values, operand: email, say } = call;
    const fields = { email, ...changeOf(values) };
    const created = await administration.createAccount(fields, await passwordFrom(call));
    say(`Created the account ${email}.`);
    printNewPassword(created, say);
  },
};

const list: AdminCommand = {
  name: 'account list',
  usage: '',
  summary: 'list all accounts',
  help: '',
  options: {},
  operands: 0,
  run({ administration, say }) {
    const rows = administration
      .accounts()
      .map((account) => [account.email, nameOf(account), quotaText(account)]);
    say(tableOf([['EMAIL', 'NAME', 'QUOTA'], ...rows]));
  },
};

const show: AdminCommand = {
  name: 'account show',
  usage: 'EMAIL',
  summary: 'show the settings of an account, except its password',
  help: '',
  options: {},
  operands: 1,
  run({ administration, operand, say }) {
    const account = administration.account(operand);
    const apps = administration.appNamesOf(account);
    say(
      tableOf([
        ['email', account.email],
        ['name', nameOf(account)],
        ['account id', account.id],
        ['namespace', account.namespace],
        ['quota', quotaText(account)],
        ['permanent deletion', account.mayDeletePermanently ? 'yes' : 'no'],
        ['password', account.passwordHash ? 'set' : 'none: nobody can sign in'],
        ['apps', apps.length > 0 ? apps.join(', ') : 'none'],
      ]),
    );
  },
};

const set: AdminCommand = {
  name: 'account set',
  usage: 'EMAIL [--password-stdin | --new-password] [--quota SIZE] [--permanent-delete yes|no]',
  summary: 'change an account',
  help: `${HELP}
  --new-password      set a random password and print it. A changed password ends the sessions of signed-in browsers`,
  options: { ...OPTIONS, 'new-password': FLAG },
  operands: 1,
  async run(call) {
    const { administration, values, operand, say } = call;
    const isNewPassword = values['new-password'] === true || values['password-stdin'] === true;
    const password = isNewPassword ? await passwordFrom(call) : undefined;
    const changed = await administration.changeAccount(operand, changeOf(values), password);
    say(`Changed the account ${changed.account.email}.`);
    printNewPassword(changed, say);
  },
};

const remove: AdminCommand = {
  name: 'account remove',
  usage: 'EMAIL --delete-files',
  summary: 'remove an account with its tokens, links and files, permanently',
  help: `  --delete-files      confirms the deletion. Tokens and links are invalid at once; a running service deletes the files
                      within an hour, a stopped one after its next start`,
  options: { 'delete-files': FLAG },
  operands: 1,
  run({ administration, values, operand, say }) {
    if (values['delete-files'] !== true)
      throw new ConfigError(
        `account remove deletes all files of ${operand} permanently; confirm it with --delete-files`,
      );
    const { email } = administration.removeAccount(operand);
    say(`Removed the account ${email}.`);
  },
};

export const ACCOUNT_COMMANDS: readonly AdminCommand[] = [create, list, show, set, remove];

function changeOf(values: Values): Omit<AccountChange, 'passwordHash'> {
  const [givenName, surname] = [textOf(values, 'given-name'), textOf(values, 'surname')];
  const [limitBytes, mayDeletePermanently] = [quotaBytes(values), yesOrNo(values, 'permanent-delete')];
  return {
    ...(givenName !== undefined && { givenName }),
    ...(surname !== undefined && { surname }),
    ...(limitBytes !== undefined && { limitBytes }),
    ...(mayDeletePermanently !== undefined && { mayDeletePermanently }),
  };
}

async function passwordFrom({ values, readPassword }: AdminCall): Promise<PasswordChoice> {
  if (values['password-stdin'] !== true) return {};
  if (values['new-password'] === true)
    throw new ConfigError('--password-stdin and --new-password contradict each other; give one of them');
  return { text: await readPassword() };
}

function printNewPassword({ newPassword }: ChangedAccount, say: AdminCall['say']): void {
  if (newPassword !== undefined) say(`password  ${newPassword}\nThe password is not shown again.`);
}

function nameOf({ givenName, surname }: Account): string {
  return `${givenName} ${surname}`.trim();
}

function quotaText({ limitBytes }: Account): string {
  return limitBytes === undefined ? 'default' : sizeText(limitBytes);
}
