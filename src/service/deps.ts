import type { Clock } from '../util/clock.ts';
import type { Account } from './accounts/accounts.ts';
import type { Jobs } from './jobs/jobs.ts';
import type { Links } from './links/links.ts';
import type { LinkPasswords } from './links/password.ts';
import type { TemporaryLinks } from './links/temporary-links.ts';
import type { Previews } from './previews/previews.ts';
import type { CopyReferences } from './registry/copy-references.ts';
import type { Registry } from './registry/registry.ts';
import type { Tags } from './registry/tags.ts';
import type { WebFiles } from './save-url/web-files.ts';
import type { Searches } from './search/searches.ts';
import type { Storage } from './storage/storage.ts';

/** What the API's functions work with. The service makes one, and faults wrap parts of it. */
export interface ServiceDeps extends Registry {
  readonly storage: Storage;
  readonly links: Links;
  readonly tags: Tags;
  readonly copyReferences: CopyReferences;
  readonly linkPasswords: LinkPasswords;
  readonly temporaryLinks: TemporaryLinks;
  readonly previews: Previews;
  readonly jobs: Jobs;
  readonly searches: Searches;
  readonly webFiles: WebFiles;
  readonly clock: Clock;
  /** Bytes free on the disk that holds the data. */
  readonly freeBytes: () => Promise<number>;
  /** Returns the account, after making sure that its home exists at the right size. */
  readonly accountWithId: (id: string) => Account;
  /** Base of shared links' addresses, without a slash at the end. */
  readonly webUrl: () => string;
  /** Base of temporary links' addresses, without a slash at the end. */
  readonly contentUrl: () => string;
  /** Aborted when the service closes; long polls answer then. */
  readonly closing: AbortSignal;
}
