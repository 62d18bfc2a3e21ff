import { parseAddress } from '../config/address.ts';
import { trustedProxiesOf } from '../config/proxies.ts';
import { ConfigError } from '../config/settings.ts';
import {
  FaultSettingError,
  type FaultSettings,
  faultsHelp,
  parseFaults,
} from '../service/faults/switches.ts';
import { startService } from '../service/server.ts';
import { systemClock } from '../util/clock.ts';
import { terminalLog } from './log.ts';
import { ADMIN_WORDS, adminCommand } from './service-admin/admin.ts';
import { serviceDirectory } from './service-directory.ts';
import { untilAskedToStop } from './signals.ts';
import { wordsOf } from './words.ts';

const HELP = `The embedded storage service alone: the API over a local folder.

Usage: davgate service [--listen HOST:PORT] [--data DIR] [--trusted-proxy CIDR] [--fault NAME=NUMBER]...
       davgate service app|account|token --help     manages its apps, accounts and tokens
       davgate service check --help                 looks for damage in its files

  --listen HOST:PORT  where to serve; default 127.0.0.1:8766. It plays the base, content and notify roles
  --data DIR          its files; default $XDG_DATA_HOME/davgate-service
  --trusted-proxy CIDR  reverse proxies that say truly where a request comes from; several with commas between
  --fault NAME=NUMBER a fault to meet, for tests of a client; repeatable

Faults, all 0 (off) unless named; a call is a read when it downloads, a write when it changes something, and else
metadata; shares go from 0 to 1:
${faultsHelp()}
`;

/** `davgate service`: serves the API until it is told to stop, and prints addresses, app and token. */
export async function serviceCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  if (ADMIN_WORDS.includes(args[0] ?? '')) return adminCommand(args, environment);
  const { listen, data, fault, help, 'trusted-proxy': proxy } = valuesOf(args);
  if (help) return console.log(HELP);
  const service = await startService({
    dataDirectory: serviceDirectory(data, environment),
    listen: parseAddress({ text: listen ?? '127.0.0.1:8766', origin: '--listen' }),
    clock: systemClock,
    log: terminalLog,
    trustedProxies: trustedProxiesOf(
      proxy === undefined ? undefined : { text: proxy, origin: '--trusted-proxy' },
    ),
    faults: faultsOf(fault ?? []),
  });
  const { email, password, appKey, appSecret, token, refreshToken } = await service.provision();
  // Listened for before anybody can read that it serves.
  const stopped = untilAskedToStop();
  console.log(`
The storage service is at  ${service.url}
  base_url, content_url and notify_url are all this address
  sign-in        ${email}  ${password ?? '(the password that was set)'}
  app key        ${appKey}
  app secret     ${appSecret}
  access token   ${token}
  refresh token  ${refreshToken}

A drive on it:  DAVGATE_TOKEN=${token} davgate --api-url ${service.url}

Press Ctrl+C to stop.
`);
  await stopped;
  await service.close();
}

interface Values {
  readonly listen?: string | undefined;
  readonly data?: string | undefined;
  readonly 'trusted-proxy'?: string | undefined;
  readonly fault?: string[] | undefined;
  readonly help?: boolean | undefined;
}

function valuesOf(args: readonly string[]): Values {
  const options = {
    listen: { type: 'string' },
    data: { type: 'string' },
    'trusted-proxy': { type: 'string' },
    fault: { type: 'string', multiple: true },
    help: { type: 'boolean' },
  } as const;
  return wordsOf('service', args, options).values;
}

function faultsOf(texts: readonly string[]): FaultSettings {
  try {
    return parseFaults(texts);
  } catch (error) {
    if (error instanceof FaultSettingError) throw new ConfigError(`--fault ${error.message}`);
    throw error;
  }
}
