import type { IncomingMessage } from 'node:http';
import type { Account } from './accounts/accounts.ts';
import { decodeArgument } from './argument.ts';
import { failure, Refusal } from './failures.ts';
import { string, union, within } from './schema.ts';

const pathRoot = union({ home: null, root: string(), namespace_id: string() });

/**
 * Checks `Dropbox-API-Path-Root`. An account has one namespace, its home, which is its root too; so
 * paths mean the same wherever the header is accepted. Throws 422 for any other namespace.
 */
export function checkPathRoot(request: IncomingMessage, account: Account): void {
  const header = request.headers['dropbox-api-path-root'];
  if (header === undefined) return;
  const root = within('HTTP header "Dropbox-API-Path-Root"', () => pathRoot(decodeArgument(String(header))));
  if (root.tag === 'home' || root.value === account.namespace) return;
  if (root.tag === 'namespace_id') throw new Refusal(422, failure('no_permission'));
  const rootInfo = {
    '.tag': 'user',
    root_namespace_id: account.namespace,
    home_namespace_id: account.namespace,
  };
  throw new Refusal(422, {
    tags: ['invalid_root'],
    value: { '.tag': 'invalid_root', invalid_root: rootInfo },
  });
}
