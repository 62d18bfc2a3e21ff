import { isKnownApp } from '../../api/authorization.ts';
import { PUBLIC_SERVICE } from '../../config/drive-config.ts';
import type { Setting, SettingName } from '../../config/settings.ts';
import type { Dialog } from '../dialog.ts';
import { serverAt } from '../login/grant.ts';
import { logIn } from '../login/login.ts';
import { openBrowser } from '../open-browser.ts';
import { answerTo } from './questions.ts';

/** Page of the public service on which a person makes an app. */
const NEW_APP_URL = 'https://www.dropbox.com/developers/apps/create';

export interface AccountChoice {
  readonly dataDirectory: string;
  /** The service, if not the public one. */
  readonly apiUrl: string | undefined;
  readonly opensBrowser: boolean;
}

/** Explains how to make an app, asks for its key, and connects an account. Throws `ApiError`, `LoginError`, `ConfigError`. */
export async function connectAccount(
  dialog: Dialog,
  { dataDirectory, apiUrl = PUBLIC_SERVICE.apiUrl, opensBrowser }: AccountChoice,
): Promise<void> {
  const isPublic = apiUrl === PUBLIC_SERVICE.apiUrl;
  console.log(`
The service lets a program in only as an app, and only you can make one:

  1. Open ${isPublic ? NEW_APP_URL : `the developer console of ${apiUrl}`} and sign in.
  2. Choose "Scoped access", then "Full Dropbox" for all files or "App folder" for one folder, and any name.
  3. In the app's tab "Permissions" tick account_info.read, files.metadata.read, files.content.read,
     files.content.write, sharing.read and sharing.write, then press "Submit".
  4. In its tab "Settings" copy the "App key". davgate does not need the secret.
  5. Paste the key here.
`);
  if (isPublic && opensBrowser) openBrowser(NEW_APP_URL, process.env);
  const appKey = await askForAppKey(dialog, apiUrl);
  const texts: [SettingName, string][] = [
    ['app-key', appKey],
    ['data-dir', dataDirectory],
  ];
  // The addresses of the public service are several, and the default.
  if (!isPublic) texts.push(['api-url', apiUrl]);
  const settings = new Map<SettingName, Setting>(
    texts.map(([name, text]) => [name, { text, origin: `--${name}` }]),
  );
  console.log('');
  await logIn(dataDirectory, { settings, file: undefined }, { dialog, opensBrowser });
  console.log('');
}

/** Asks for the app's key until the service knows it. */
async function askForAppKey(dialog: Dialog, apiUrl: string): Promise<string> {
  for (;;) {
    const key = await answerTo(dialog, 'App key: ');
    if (key === '') continue;
    if (await isKnownApp(serverAt(apiUrl), key)) return key;
    console.log('The service does not know this key. Copy it again, without the secret.');
  }
}
