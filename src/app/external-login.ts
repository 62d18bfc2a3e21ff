import type { DriveConfig } from '../config/drive-config.ts';
import { ConfigError } from '../config/settings.ts';
import { parseCheckedUser } from '../config/user-rows.ts';
import { firstDriveOf, unknownDriveOf } from '../config/users.ts';
import { askAuthUrl, LoginUnavailable } from '../http/auth-url.ts';
import type { CheckLogin } from '../http/credentials.ts';

/**
 * Returns the check of logins at `url`, whose answer may name the user and the drives. Without drives the user gets those of
 * the configuration's user of that name, or else the first one.
 */
export function externalLogin(url: string, drives: readonly DriveConfig[]): CheckLogin {
  const everyones = firstDriveOf(drives);
  return async (login, find) => {
    // The name that the login will get, or the owner of DOMAIN\ann would become the configured ann.
    const asked = { ...login, name: find(login.name)?.name ?? login.name };
    const text = await askAuthUrl(url, asked);
    if (text === undefined) return undefined;
    const answer = await checkedUser(text);
    const name = answer.name ?? asked.name;
    const configured = find(name);
    const unknown = unknownDriveOf(answer.grants ?? [], drives);
    if (unknown !== undefined)
      throw new LoginUnavailable(
        `named the drive "${unknown}" for user ${name}, which davgate does not have`,
      );
    const bandwidth = answer.bandwidth ?? configured?.bandwidth;
    const grants = answer.grants ?? configured?.grants ?? everyones;
    return { name, grants, ...(bandwidth && { bandwidth }) };
  };
}

async function checkedUser(text: string) {
  try {
    return await parseCheckedUser(text, 'the answer');
  } catch (error) {
    if (error instanceof ConfigError)
      throw new LoginUnavailable(`gave an answer that is of no use: ${error.message}`);
    throw error;
  }
}
