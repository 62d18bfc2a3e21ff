import { randomBytes } from 'node:crypto';
import { createInterface } from 'node:readline/promises';
import { authorizationUrl, exchangeCode, type Grant, newProof } from '../../api/authorization.ts';
import { ApiError } from '../../api/errors.ts';
import { PUBLIC_SERVICE } from '../../config/drive-config.ts';
import { systemClock } from '../../util/clock.ts';
import { type Dialog, withDialog } from '../dialog.ts';
import { openBrowser } from '../open-browser.ts';
import { LoginError } from './login-error.ts';
import { openRedirect } from './redirect.ts';

/** Page of the public service on which a person grants an app access. */
const PUBLIC_AUTHORIZE_URL = 'https://www.dropbox.com/oauth2/authorize';

/** Random bytes of `state`, which a page that sends its own code cannot guess. */
const STATE_BYTES = 16;

export interface GrantRequest {
  readonly apiUrl: string;
  readonly appKey: string;
  /** Where the browser sends the code; `undefined`: the person copies it. */
  readonly redirectUri?: string | undefined;
  /** Asks for the code; `undefined`: a dialog of its own, or lines of a pipe. */
  readonly dialog?: Dialog | undefined;
  readonly opensBrowser: boolean;
}

/** Shows and opens the service's page, waits for its code and exchanges that for a login. */
export async function askForGrant(request: GrantRequest): Promise<Grant> {
  const { apiUrl, appKey, redirectUri } = request;
  const { verifier, challenge } = newProof();
  const state = redirectUri === undefined ? undefined : randomBytes(STATE_BYTES).toString('base64url');
  const redirect = redirectUri !== undefined && state ? await openRedirect(redirectUri, state) : undefined;
  const exchange = (code: string) => exchangeCode(serverAt(apiUrl), { code, appKey, verifier, redirectUri });
  try {
    const page = apiUrl === PUBLIC_SERVICE.apiUrl ? PUBLIC_AUTHORIZE_URL : `${apiUrl}/oauth2/authorize`;
    const url = authorizationUrl(page, { appKey, challenge, redirectUri, state });
    console.log(`Open this address in a browser, sign in and allow the access:\n\n  ${url}\n`);
    if (request.opensBrowser) openBrowser(url, process.env);
    if (redirect) return await exchange(await redirect.code());
    if (request.dialog) return await grantByTypedCode(request.dialog, exchange);
    if (process.stdin.isTTY) return await withDialog((dialog) => grantByTypedCode(dialog, exchange));
    return await exchange(await pipedCode());
  } finally {
    await redirect?.close();
  }
}

export function serverAt(apiUrl: string) {
  return { apiUrl, clock: systemClock, signal: new AbortController().signal };
}

const CODE_PROMPT = 'Paste the code that the page shows and press Enter: ';
const NO_CODE = 'no code was pasted; run davgate login again';

/** Asks for the code until the service accepts one. */
async function grantByTypedCode(dialog: Dialog, exchange: (code: string) => Promise<Grant>): Promise<Grant> {
  for (;;) {
    const code = (await dialog.ask(CODE_PROMPT))?.trim();
    if (code === undefined) throw new LoginError(NO_CODE);
    if (code === '') continue;
    try {
      return await exchange(code);
    } catch (error) {
      if (!(error instanceof ApiError) || error.details.summary !== 'invalid_grant') throw error;
      console.log(
        'The service does not accept this code. Copy the whole code, or open the address for a new one.',
      );
    }
  }
}

async function pipedCode(): Promise<string> {
  process.stdout.write(CODE_PROMPT);
  const lines = createInterface({ input: process.stdin });
  for await (const line of lines) if (line.trim() !== '') return line.trim();
  throw new LoginError(NO_CODE);
}
