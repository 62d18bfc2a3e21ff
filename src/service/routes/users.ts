import { NO_REFUSALS } from '../refusals.ts';
import { openRpc, type Route, rpc } from '../route.ts';
import { string, withDefault } from '../schema.ts';

/** An individual account whose links may have passwords and ends, which `basic` ones may not. */
const currentAccount = rpc({
  name: 'users/get_current_account',
  scope: 'account_info.read',
  argument: {},
  refusals: NO_REFUSALS,
  handle: ({ caller: { account }, webUrl }) => ({
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
    locale: 'en',
    referral_link: `${webUrl()}/`,
    is_paired: false,
    account_type: { '.tag': 'pro' },
    root_info: {
      '.tag': 'user',
      root_namespace_id: account.namespace,
      home_namespace_id: account.namespace,
    },
  }),
});

const spaceUsage = rpc({
  name: 'users/get_space_usage',
  scope: 'account_info.read',
  argument: {},
  refusals: NO_REFUSALS,
  handle: async ({ caller, storage, freeBytes }) => {
    const { usedBytes, limitBytes } = storage.usage(caller.account.namespace);
    // A promise of more than the disk can hold would be broken in the middle of a copy.
    const allocated = Math.max(usedBytes, Math.min(limitBytes, usedBytes + (await freeBytes())));
    return { used: usedBytes, allocation: { '.tag': 'individual', allocated } };
  },
});

const QUERY_MAX_CHARACTERS = 500;

/** Says what it is told: whether service and token are well. */
const checkUser = rpc({
  name: 'check/user',
  scope: 'account_info.read',
  argument: { query: withDefault(string({ maxLength: QUERY_MAX_CHARACTERS }), '') },
  refusals: NO_REFUSALS,
  handle: ({ argument }) => ({ result: argument.query }),
});

/** Likewise of an app's key and secret. */
const checkApp = openRpc('app', {
  name: 'check/app',
  scope: undefined,
  argument: { query: withDefault(string({ maxLength: QUERY_MAX_CHARACTERS }), '') },
  refusals: NO_REFUSALS,
  handle: ({ argument }) => ({ result: argument.query }),
});

/** Also ends the refresh token that the token came from, and its siblings. */
const revokeToken = rpc({
  name: 'auth/token/revoke',
  scope: undefined,
  argument: {},
  refusals: NO_REFUSALS,
  handle: ({ caller, tokens }) => {
    tokens.revoke(caller.token);
    return null;
  },
});

export const USER_ROUTES: readonly Route[] = [currentAccount, spaceUsage, checkUser, checkApp, revokeToken];

function initials(...names: readonly string[]): string {
  return names.map((name) => Array.from(name)[0] ?? '').join('');
}
