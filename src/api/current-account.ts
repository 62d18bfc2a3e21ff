import type { FullAccount, SpaceUsage } from '../wire/account.ts';
import type { Client } from './context.ts';
import type { Quota, Remote } from './remote.ts';
import { type CallRequest, parsed, rpcRequest } from './request.ts';

/** The owner of the storage. */
export interface Account {
  readonly id: string;
  readonly displayName: string;
  readonly email: string;
  /** Numbers of the account's home and root; absent if the service does not tell them. */
  readonly homeNamespace?: string;
  readonly rootNamespace?: string;
}

export interface AccountCalls extends Pick<Remote, 'quota'> {
  /** `get_current_account`. Also shows whether the service and the token work. */
  account(signal?: AbortSignal): Promise<Account>;
}

/** The calls about the account and its space. */
export function accountOf({ caller }: Client): AccountCalls {
  return {
    quota: (signal) =>
      caller.call({
        request: rpcRequest('users/get_space_usage', undefined),
        lane: 'metadata',
        signal,
        read: ({ text }) => quotaOf(parsed<SpaceUsage>(text)),
      }),

    account: (signal) =>
      caller.call({
        request: accountRequest(),
        lane: 'metadata',
        signal,
        read: readAccount,
      }),
  };
}

export function accountRequest(): CallRequest {
  return rpcRequest('users/get_current_account', undefined);
}

/** Throws `TypeError` or `SyntaxError` for an answer that makes no sense. */
export function readAccount({ text }: { readonly text: string }): Account {
  const { account_id: id, name, email, root_info: roots } = parsed<FullAccount>(text);
  if (typeof id !== 'string' || typeof email !== 'string') throw new TypeError('no account_id or email');
  const account = { id, displayName: name.display_name, email };
  // A service without namespaces may leave this out.
  if (!roots) return account;
  return { ...account, homeNamespace: roots.home_namespace_id, rootNamespace: roots.root_namespace_id };
}

/** Returns the nearest of several limits; `undefined` for an unknown kind of account. */
function quotaOf({ used, allocation }: SpaceUsage): Quota | undefined {
  if (!Number.isFinite(used)) throw new TypeError('no used');
  switch (allocation['.tag']) {
    case 'individual':
      return { usedBytes: used, allocatedBytes: allocation.allocated };
    case 'team': {
      // The team's usage includes the user's. A limit of the user's own may be nearer.
      const team = { usedBytes: allocation.used, allocatedBytes: allocation.allocated };
      const ownBytes = allocation.user_within_team_space_allocated;
      if (!ownBytes || allocation.user_within_team_space_limit_type['.tag'] !== 'stop_sync') return team;
      const own = { usedBytes: allocation.user_within_team_space_used_cached, allocatedBytes: ownBytes };
      return freeOf(own) < freeOf(team) ? own : team;
    }
    default:
      return undefined;
  }
}

function freeOf({ usedBytes, allocatedBytes }: Quota): number {
  return allocatedBytes - usedBytes;
}
