import type { Accounts } from '../accounts/accounts.ts';
import type { Apps } from '../accounts/apps.ts';
import type { Codes } from '../accounts/codes.ts';
import type { Grants } from '../accounts/grants.ts';
import type { Tokens } from '../accounts/tokens.ts';
import type { JobRows } from '../jobs/job-rows.ts';
import type { Links } from '../links/links.ts';
import type { TemporaryLinks } from '../links/temporary-links.ts';
import type { SignedInBrowsers } from '../oauth/signed-in.ts';
import type { CopyReferences } from './copy-references.ts';
import type { GuessRows } from './guess-rows.ts';
import type { ItemRows } from './item-rows.ts';
import type { Nodes } from './nodes.ts';
import type { Tags } from './tags.ts';

/**
 * The accounts, the apps, and everything that belongs to them beside files. Other processes may change it at any time,
 * and each call sees their changes: a token that is revoked is refused from the next call on.
 */
export interface Directory {
  readonly accounts: Accounts;
  readonly apps: Apps;
  readonly grants: Grants;
  readonly codes: Codes;
  readonly tokens: Tokens;
  readonly signedIn: SignedInBrowsers;
  readonly guesses: GuessRows;
  readonly nodes: Nodes;
  readonly jobRows: JobRows;
  readonly links: Links;
  readonly temporaryLinks: TemporaryLinks;
  readonly copyReferences: CopyReferences;
  readonly tags: Tags;
  readonly itemRows: readonly ItemRows[];
}

/** A directory that is open, and has to be closed. */
export interface OpenedDirectory {
  readonly directory: Directory;
  close(): Promise<void>;
}
