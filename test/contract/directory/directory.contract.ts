import { accountsContract } from './accounts.contract.ts';
import { appsContract } from './apps.contract.ts';
import { codesContract } from './codes.contract.ts';
import type { OpenTwice } from './directory-under-test.ts';
import { itemsContract } from './items.contract.ts';
import { jobsContract } from './jobs.contract.ts';
import { linksContract } from './links.contract.ts';
import { guessesContract, signInsContract } from './sign-ins.contract.ts';
import { temporaryLinksContract } from './temporary-links.contract.ts';
import { tokensContract } from './tokens.contract.ts';

/** Tests an implementation of `Directory`; `open` opens an empty one twice, like two processes. */
export function directoryContract(driver: string, open: OpenTwice): void {
  accountsContract(driver, open);
  appsContract(driver, open);
  codesContract(driver, open);
  tokensContract(driver, open);
  signInsContract(driver, open);
  guessesContract(driver, open);
  jobsContract(driver, open);
  linksContract(driver, open);
  temporaryLinksContract(driver, open);
  itemsContract(driver, open);
}
