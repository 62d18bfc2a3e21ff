import { Networks } from '../util/networks.ts';
import { ConfigError, type Setting } from './settings.ts';

/** The networks in a list with commas. Throws `ConfigError`. */
export function trustedProxiesOf(setting: Setting | undefined): Networks {
  const cidrs = setting?.text.split(',').map((cidr) => cidr.trim()) ?? [];
  try {
    return new Networks(cidrs);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new ConfigError(
      `${setting?.origin}: "${error.message}" is neither a network nor an address; write for example 10.0.0.0/8 or 127.0.0.1, several with commas between`,
    );
  }
}
