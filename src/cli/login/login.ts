import { revokeLogin } from '../../api/authorization.ts';
import { createRemote } from '../../api/client.ts';
import { ApiError } from '../../api/errors.ts';
import { dataDirectoryOf } from '../../config/configuration.ts';
import { addressesOf } from '../../config/drive-config.ts';
import {
  loginFile,
  prepareForLogin,
  readLogin,
  removeLogin,
  type StoredLogin,
  writeLogin,
} from '../../config/login-file.ts';
import { ConfigError, type Settings } from '../../config/settings.ts';
import { systemClock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { type LoadedSettings, loadSettings } from '../load-settings.ts';
import { askForGrant, type GrantRequest, serverAt } from './grant.ts';
import { LoginError } from './login-error.ts';
import { refusePendingWrites } from './pending-writes.ts';
import { scopesText } from './scopes.ts';

/** How the person grants access. */
type LoginWay = Omit<GrantRequest, 'apiUrl' | 'appKey'>;

/** `davgate login`: connects an account, or disconnects it with `--remove`. Returns the exit code. */
export async function loginCommand(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { isRemoved, ...way }: { readonly isRemoved: boolean } & LoginWay,
): Promise<number> {
  const loaded = await loadSettings(flags, environment);
  const dataDirectory = dataDirectoryOf(loaded.settings, environment);
  try {
    if (isRemoved) await logOut(dataDirectory, loaded);
    else await logIn(dataDirectory, loaded, way);
    return 0;
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof LoginError)) throw error;
    process.stderr.write(`davgate: ${error.message}\n`);
    return 1;
  }
}

/** Connects an account. Throws `LoginError`, `ApiError` and `ConfigError`. */
export async function logIn(dataDirectory: string, loaded: LoadedSettings, way: LoginWay): Promise<void> {
  refuseUnusable(loaded);
  const appKey = appKeyIn(loaded.settings);
  const addresses = addressesOf(loaded.settings);
  const before = readLogin(dataDirectory);
  if (before && before.apiUrl !== addresses.apiUrl)
    throw new ConfigError(
      `${loginFile(dataDirectory)}: an account at ${before.apiUrl} is connected; run davgate login --remove first`,
    );
  // Before the code is issued, because a code can be used only once.
  await prepareForLogin(dataDirectory);
  if (!before) await refusePendingWrites(dataDirectory, loaded.settings);
  const { apiUrl } = addresses;
  const { scopes, ...grant } = await askForGrant({ ...way, apiUrl, appKey });
  const login: StoredLogin = { ...addresses, appKey, ...grant };
  if (before) await refuseOther(before, login);
  await writeLogin(dataDirectory, login);
  // The old login is no longer used; a failure to revoke it does no harm.
  if (before) await revokeLogin(serverAt(before.apiUrl), before).catch(() => undefined);
  console.log(`
Connected: ${await whose(login)}
${scopes ? `${scopesText(scopes)}\n` : ''}The login is in ${loginFile(dataDirectory)}. davgate serve uses it from its next start; davgate doctor tests it.`);
}

/** Refuses a login to another account: pending writes belong to the account before. */
async function refuseOther(before: StoredLogin, login: StoredLogin): Promise<void> {
  if (before.accountId === login.accountId) return;
  await revokeLogin(serverAt(login.apiUrl), login).catch(() => undefined);
  throw new LoginError('another account is connected, and stays connected; run davgate login --remove first');
}

/** Returns the account's name and address, or its id if the app may not read them: the login is stored already. */
async function whose({ appKey, refreshToken, accountId, ...addresses }: StoredLogin): Promise<string> {
  const credentials = { appKey, refreshToken };
  const remote = createRemote({ ...addresses, credentials, root: '', clock: systemClock, log: silentLog });
  try {
    const { displayName, email } = await remote.account();
    return `${displayName} (${email})`;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return `${accountId} (name unknown: ${error.message})`;
  } finally {
    await remote.close();
  }
}

async function logOut(dataDirectory: string, { settings }: LoadedSettings): Promise<void> {
  const login = readLogin(dataDirectory);
  const file = loginFile(dataDirectory);
  if (!login) throw new LoginError(`no account is connected: there is no ${file}`);
  await refusePendingWrites(dataDirectory, settings);
  const { apiUrl, appKey, refreshToken } = login;
  const wasGood = await revokeLogin(serverAt(apiUrl), { appKey, refreshToken }).catch((error) => {
    if (!(error instanceof ApiError)) throw error;
    throw new LoginError(
      `cannot revoke the login: ${error.message}; try again, or delete ${file} and disconnect the app on the account's own pages`,
    );
  });
  await removeLogin(dataDirectory);
  console.log(
    wasGood ? 'The login was revoked and deleted.' : 'The login had been revoked before; it was deleted.',
  );
}

/** Refuses settings with which `serve` would ignore a login. */
function refuseUnusable({ settings, file }: LoadedSettings): void {
  const given = settings.get('token') ?? settings.get('refresh-token');
  if (given)
    throw new ConfigError(`${given.origin}: davgate serve uses this and would ignore a login; leave it out`);
  if (file?.drives)
    throw new ConfigError(`--config: ${file.origin} has "drives", and each drive has its own login there`);
}

function appKeyIn(settings: Settings): string {
  const key = settings.get('app-key')?.text;
  if (key) return key;
  throw new ConfigError(
    "login: the app key is missing; give --app-key or DAVGATE_APP_KEY (the service's developer console makes apps)",
  );
}
