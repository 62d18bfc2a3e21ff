import type { Account } from '../accounts/accounts.ts';
import { failure, refused } from '../api/failures.ts';
import { NO_REFUSALS } from '../api/refusals.ts';
import { rootInfo } from '../api/root-info.ts';
import { openRpc, type Route, rpc } from '../api/route.ts';
import { list, required, string, union, withDefault } from '../api/schema.ts';

/** Returns the members of Account, which both the owner and others may see. */
function accountFields(account: Account): object {
  return {
    account_id: account.id,
    name: {
      given_name: account.givenName,
      surname: account.surname,
      familiar_name: account.givenName,
      display_name: `${account.givenName} ${account.surname}`.trim(),
      abbreviated_name: initials(account.givenName, account.surname),
    },
    email: account.email,
    email_verified: true,
    disabled: false,
  };
}

/**
 * Returns the caller's account, never a `basic` one: its links may have passwords and expiry, unlike those of `basic`
 * accounts.
 */
const currentAccount = rpc({
  name: 'users/get_current_account',
  scope: 'account_info.read',
  argument: {},
  refusals: NO_REFUSALS,
  handle: ({ caller: { account }, webUrl }) => ({
    ...accountFields(account),
    locale: 'en',
    referral_link: `${webUrl()}/`,
    is_paired: false,
    account_type: { '.tag': account.team ? 'business' : 'pro' },
    root_info: rootInfo(account),
  }),
});

const accountId = string({ minLength: 40, maxLength: 40 });

/** BasicAccount. */
function basicAccount(account: Account, caller: Account): object {
  const { team } = caller;
  const isTeammate = team !== undefined && account.team?.namespace === team.namespace;
  return { ...accountFields(account), is_teammate: isTeammate };
}

/** Returns another account by its id; ids cannot be guessed. */
const account = rpc({
  name: 'users/get_account',
  scope: 'sharing.read',
  argument: { account_id: required(accountId) },
  refusals: NO_REFUSALS,
  handle: async ({ argument, accounts, caller }) => {
    const found = await accounts.find(argument.account_id);
    if (!found) throw refused(failure('no_account'));
    return basicAccount(found, caller.account);
  },
});

const ACCOUNTS_MAX = 300;

/** Returns all accounts, or refuses the call. */
const accountBatch = rpc({
  name: 'users/get_account_batch',
  scope: 'sharing.read',
  argument: { account_ids: required(list(accountId, { min: 1, max: ACCOUNTS_MAX })) },
  refusals: NO_REFUSALS,
  handle: async ({ argument, accounts, caller }) => {
    const found = await accounts.findAll(argument.account_ids);
    return found.map((one, index) => {
      if (!one) throw refused(failure('no_account', { no_account: argument.account_ids[index] }));
      return basicAccount(one, caller.account);
    });
  },
});

/** UserFeature. None is supported. */
const feature = union({
  paper_as_files: null,
  file_locking: null,
  team_shared_dropbox: null,
  distinct_member_home: null,
});

const FEATURES_MAX = 100;

const features = rpc({
  name: 'users/features/get_values',
  scope: 'account_info.read',
  argument: { features: required(list(feature, { max: FEATURES_MAX })) },
  refusals: NO_REFUSALS,
  handle: ({ argument }) => {
    if (argument.features.length === 0) throw refused(failure('empty_features_list'));
    const value = { '.tag': 'enabled', enabled: false };
    return { values: argument.features.map(({ tag }) => ({ '.tag': tag, [tag]: value })) };
  },
});

const spaceUsage = rpc({
  name: 'users/get_space_usage',
  scope: 'account_info.read',
  argument: {},
  refusals: NO_REFUSALS,
  handle: async ({ caller, storage, freeBytes }) => {
    const { usedBytes, limitBytes } = await storage.usage(caller.account.namespace);
    // More than the disk can hold would let a copy fail in the middle.
    const allocated = Math.max(usedBytes, Math.min(limitBytes, usedBytes + (await freeBytes())));
    if (!caller.account.team) return { used: usedBytes, allocation: { '.tag': 'individual', allocated } };
    const team = {
      used: usedBytes,
      allocated,
      user_within_team_space_allocated: 0,
      user_within_team_space_limit_type: { '.tag': 'off' },
      user_within_team_space_used_cached: usedBytes,
    };
    return { used: usedBytes, allocation: { '.tag': 'team', ...team } };
  },
});

const QUERY_CHARACTERS_MAX = 500;

/** Returns its argument, so that a client can test the service and its token. */
const checkUser = rpc({
  name: 'check/user',
  scope: 'account_info.read',
  argument: { query: withDefault(string({ maxLength: QUERY_CHARACTERS_MAX }), '') },
  refusals: NO_REFUSALS,
  handle: ({ argument }) => ({ result: argument.query }),
});

/** Returns its argument, so that a client can test its app key and secret. */
const checkApp = openRpc('app', {
  name: 'check/app',
  scope: undefined,
  argument: { query: withDefault(string({ maxLength: QUERY_CHARACTERS_MAX }), '') },
  refusals: NO_REFUSALS,
  handle: ({ argument }) => ({ result: argument.query }),
});

/** Revokes the token, the refresh token that it came from, and that one's other tokens. */
const revokeToken = rpc({
  name: 'auth/token/revoke',
  scope: undefined,
  argument: {},
  refusals: NO_REFUSALS,
  handle: async ({ caller, tokens }) => {
    await tokens.revoke(caller.token);
    return null;
  },
});

export const USER_ROUTES: readonly Route[] = [
  currentAccount,
  account,
  accountBatch,
  features,
  spaceUsage,
  checkUser,
  checkApp,
  revokeToken,
];

function initials(...names: readonly string[]): string {
  return names.map((name) => Array.from(name)[0] ?? '').join('');
}
