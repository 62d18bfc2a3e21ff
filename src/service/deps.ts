import type { Clock } from '../util/clock.ts';
import type { Account } from './accounts/accounts.ts';
import type { Directory } from './directory/directory.ts';
import type { Jobs } from './jobs/jobs.ts';
import type { LinkPasswords } from './links/password.ts';
import type { Previews } from './previews/previews.ts';
import type { WebFiles } from './save-url/web-files.ts';
import type { Searches } from './search/searches.ts';
import type { Storage } from './storage/storage.ts';

/** Everything that the API's functions use. The service makes one; fault injection wraps parts of it. */
export interface ServiceDeps extends Directory {
  readonly storage: Storage;
  readonly linkPasswords: LinkPasswords;
  readonly previews: Previews;
  readonly jobs: Jobs;
  readonly searches: Searches;
  readonly webFiles: WebFiles;
  readonly clock: Clock;
  /** Free space on the disk that holds the data, in bytes. */
  readonly freeBytes: () => Promise<number>;
  /** Returns an account with its paths in its root, and first makes sure that its home exists with the right quota. */
  readonly withHome: (account: Account) => Promise<Account>;
  /** Makes sure that the folder of a team's member exists. */
  readonly makeTeamFolder: (account: Account) => Promise<void>;
  /** Prefix of shared links' URLs, without a slash at the end. */
  readonly webUrl: () => string;
  /** Prefix of temporary links' URLs, without a slash at the end. */
  readonly contentUrl: () => string;
  /** Aborted when the service closes, so that long polls answer. */
  readonly closing: AbortSignal;
}
