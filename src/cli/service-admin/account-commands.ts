import { ConfigError } from '../../config/settings.ts';
import type { Account, AccountChange } from '../../service/accounts/accounts.ts';
import type { ChangedAccount, PasswordChoice } from '../../service/admin/administration.ts';
import { sizeText } from '../../util/size-text.ts';
import { tableOf } from '../table.ts';
import { type AdminCall, type AdminCommand, JSON_OPTION, sayRows } from './command.ts';
import { quotaBytes, textOf, type Values, yesOrNo } from './values.ts';

const OPTIONS = [
  { flags: '--given-name <NAME>', help: "the owner's given name, which some clients show" },
  { flags: '--surname <NAME>', help: "the owner's surname" },
  { flags: '--quota <SIZE>', help: "maximum size of the account's files: 500MB, 20GiB, 2TB" },
  {
    flags: '--permanent-delete <yes|no>',
    help: "whether the API may delete the account's files permanently",
  },
  { flags: '--password-stdin', help: 'read the password from standard input' },
] as const;

const create: AdminCommand = {
  name: 'account create',
  summary: 'create an account, and print its password unless one is given',
  options: [
    ...OPTIONS,
    {
      flags: '--team <NAME>',
      help: "make it a member of this team: its home is a folder of the team's space",
    },
  ],
  operand: 'EMAIL',
  notes: `Defaults: a random password, the local part of EMAIL as the name, 2 TiB (or the size of the disk),
no permanent deletion.`,
  mayCreate: true,
  async run(call) {
    const { administration, values, operand: email, say } = call;
    const team = textOf(values, 'team');
    const fields = { email, ...changeOf(values), ...(team !== undefined && { team }) };
    if (team !== undefined && fields.limitBytes !== undefined)
      throw new ConfigError('--quota and --team exclude each other: all members share the space of the team');
    const created = await administration.createAccount(fields, await passwordFrom(call));
    say(`Created the account ${email}.`);
    printNewPassword(created, say);
  },
};

const list: AdminCommand = {
  name: 'account list',
  summary: 'list all accounts',
  options: [JSON_OPTION],
  async run(call) {
    const rows = (await call.administration.accounts()).map((account) => ({
      email: account.email,
      name: nameOf(account),
      quota: quotaText(account),
      ...(account.team && { team: account.team.name }),
      ...(account.limitBytes !== undefined && { quotaBytes: account.limitBytes }),
    }));
    sayRows(call, rows, () =>
      tableOf([['EMAIL', 'NAME', 'QUOTA'], ...rows.map(({ email, name, quota }) => [email, name, quota])]),
    );
  },
};

const show: AdminCommand = {
  name: 'account show',
  summary: 'show the settings of an account, except its password',
  options: [JSON_OPTION],
  operand: 'EMAIL',
  async run(call) {
    const account = await call.administration.account(call.operand);
    const apps = await call.administration.appNamesOf(account);
    const { email, id, namespace, team, mayDeletePermanently, passwordHash } = account;
    const row = {
      email,
      name: nameOf(account),
      id,
      namespace,
      ...(team && { team: team.name, teamNamespace: team.namespace, homePath: team.homePath }),
      quota: quotaText(account),
      mayDeletePermanently,
      hasPassword: Boolean(passwordHash),
      apps,
    };
    sayRows(call, row, () =>
      tableOf([
        ['email', email],
        ['name', row.name],
        ['account id', id],
        ['namespace', namespace],
        ...(team ? [['team', `${team.name} (namespace ${team.namespace}, home ${team.homePath})`]] : []),
        ['quota', row.quota],
        ['permanent deletion', mayDeletePermanently ? 'yes' : 'no'],
        ['password', row.hasPassword ? 'set' : 'none: nobody can sign in'],
        ['apps', apps.length > 0 ? apps.join(', ') : 'none'],
      ]),
    );
  },
};

const set: AdminCommand = {
  name: 'account set',
  summary: 'change an account',
  options: [
    ...OPTIONS,
    {
      flags: '--new-password',
      help: 'set a random password and print it. A changed password ends the sessions of signed-in browsers',
    },
  ],
  operand: 'EMAIL',
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
  summary: 'remove an account with its tokens, links and files, permanently',
  options: [
    {
      flags: '--delete-files',
      help: 'confirms the deletion. Tokens and links are invalid at once; a running service deletes the files within an hour, a stopped one after its next start',
    },
  ],
  operand: 'EMAIL',
  async run({ administration, values, operand, say }) {
    if (values['delete-files'] !== true)
      throw new ConfigError(
        `account remove deletes all files of ${operand} permanently; confirm it with --delete-files`,
      );
    const { email, team } = await administration.removeAccount(operand);
    say(`Removed the account ${email}.`);
    if (team) say(`Its folder ${team.homePath} stays in the space of the team ${team.name}.`);
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
