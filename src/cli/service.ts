import { parseAddress, parseUrl, trustedProxiesOf } from '../config/address.ts';
import { ConfigError } from '../config/settings.ts';
import {
  FaultSettingError,
  type FaultSettings,
  faultsHelp,
  parseFaults,
} from '../service/faults/switches.ts';
import { type RunningService, type ServiceOptions, startService } from '../service/server.ts';
import { systemClock } from '../util/clock.ts';
import { optionsOf } from './arguments.ts';
import { terminalLog } from './log.ts';
import { ADMIN_WORDS, adminCommand } from './service-admin/admin.ts';
import { serviceDirectory } from './service-directory.ts';
import { endWhenAskedWhileStarting, untilAskedToStop } from './signals.ts';

const HELP = `The embedded storage service alone: the API over a local folder.

Usage: davgate service [--listen HOST:PORT] [--data DIR] [--tls-cert FILE --tls-key FILE] [--content-listen HOST:PORT]
                       [--public-url URL] [--content-public-url URL] [--trusted-proxy CIDR] [--fault NAME=NUMBER]...
       davgate service app|account|token --help     manages its apps, accounts and tokens
       davgate service check --help                 looks for damage in its files

  --listen HOST:PORT  where to serve; default 127.0.0.1:8766. It plays the base, content and notify roles
  --tls-cert FILE     serve https with this certificate (PEM); SIGHUP makes davgate read it again
  --tls-key FILE      the certificate's private key (PEM)
  --content-listen HOST:PORT
                      a second address, for functions that carry file bytes (content_url). Each address then rejects the
                      functions of the other, as the real service's hosts do
  --public-url URL    the address at which people reach the service; shared links begin with it. Default: the
                      --listen address, with this machine's name for 0.0.0.0
  --content-public-url URL
                      the address at which clients reach --content-listen behind a reverse proxy; temporary links begin
                      with it. Default: --public-url
  --data DIR          directory of its files; default $XDG_DATA_HOME/davgate-service
  --trusted-proxy CIDR  reverse proxies whose forwarding headers are trusted, as networks separated by commas
  --fault NAME=NUMBER a fault to inject, for tests of a client; repeatable

Faults, all 0 (off) by default. A call that downloads is a read, one that changes something a write, any other metadata.
Shares go from 0 to 1:
${faultsHelp()}
`;

/** `davgate service`: prints addresses, app and token, and serves the API until a signal stops it. */
export async function serviceCommand(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  if (ADMIN_WORDS.includes(args[0] ?? '')) return adminCommand(args, environment);
  const values = valuesOf(args);
  const { listen, data, fault, help, 'trusted-proxy': proxy } = values;
  if (help) return console.log(HELP);
  const addresses = addressesOf(values);
  const hasStarted = endWhenAskedWhileStarting();
  const service = await startService({
    dataDirectory: serviceDirectory(data, environment),
    listen: parseAddress({ text: listen ?? '127.0.0.1:8766', origin: '--listen' }),
    ...addresses,
    clock: systemClock,
    log: terminalLog,
    trustedProxies: trustedProxiesOf(
      proxy === undefined ? undefined : { text: proxy, origin: '--trusted-proxy' },
    ),
    faults: faultsOf(fault ?? []),
  });
  const contentUrl = addresses.contentPublicUrl ?? service.contentUrl;
  const { email, password, appKey, appSecret, token, refreshToken } = await service.provision();
  // Before the start is announced: a program that waits for the announcement may stop the service at once.
  const stopped = untilAskedToStop(addresses.tls ? () => renewCertificate(service) : noteNothingToReload);
  hasStarted();
  console.log(`
The storage service is at  ${service.url}
  ${rolesOf(service.url, contentUrl)}
  sign-in        ${email}  ${password ?? '(the password that was set)'}
  app key        ${appKey}
  app secret     ${appSecret}
  access token   ${token}
  refresh token  ${refreshToken}

A drive on it:  DAVGATE_TOKEN=${token} davgate --api-url ${service.url}${contentFlag(service.url, contentUrl)}

Press Ctrl+C to stop.
`);
  await stopped;
  await service.close();
}

/** Answers SIGHUP without a certificate: a service manager's `reload` sends it, and must not end the service. */
function noteNothingToReload(): void {
  terminalLog.info(
    'SIGHUP: nothing to reload without --tls-cert; other settings change only at the next start',
  );
}

/** Reloads the certificate. An unusable one is logged, and the previous one stays in use. */
function renewCertificate(service: RunningService): void {
  try {
    service.renewCertificate();
    terminalLog.info('certificate reloaded');
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    terminalLog.error('cannot reload the certificate; the previous one stays in use', { reason });
  }
}

function rolesOf(url: string, contentUrl: string): string {
  if (contentUrl === url) return 'base_url, content_url and notify_url are all this address';
  return `base_url and notify_url are this address\n  content_url    ${contentUrl}`;
}

function contentFlag(url: string, contentUrl: string): string {
  return contentUrl === url ? '' : ` --content-url ${contentUrl}`;
}

interface Values {
  readonly listen?: string | undefined;
  readonly 'tls-cert'?: string | undefined;
  readonly 'tls-key'?: string | undefined;
  readonly 'content-listen'?: string | undefined;
  readonly 'public-url'?: string | undefined;
  readonly 'content-public-url'?: string | undefined;
  readonly data?: string | undefined;
  readonly 'trusted-proxy'?: string | undefined;
  readonly fault?: string[] | undefined;
  readonly help?: boolean | undefined;
}

function valuesOf(args: readonly string[]): Values {
  const options = {
    listen: { type: 'string' },
    'tls-cert': { type: 'string' },
    'tls-key': { type: 'string' },
    'content-listen': { type: 'string' },
    'public-url': { type: 'string' },
    'content-public-url': { type: 'string' },
    data: { type: 'string' },
    'trusted-proxy': { type: 'string' },
    fault: { type: 'string', multiple: true },
    help: { type: 'boolean' },
  } as const;
  return optionsOf('service', args, options).values;
}

/** Throws `ConfigError`. */
function addressesOf(
  values: Values,
): Pick<ServiceOptions, 'contentListen' | 'contentPublicUrl' | 'publicUrl' | 'tls'> {
  const [certFile, keyFile] = [values['tls-cert'], values['tls-key']];
  if (certFile !== undefined && keyFile === undefined)
    throw new ConfigError('--tls-cert: a certificate without its key; give --tls-key too');
  if (keyFile !== undefined && certFile === undefined)
    throw new ConfigError('--tls-key: a key without its certificate; give --tls-cert too');
  const [content, publicUrl] = [values['content-listen'], values['public-url']];
  const contentPublicUrl = values['content-public-url'];
  return {
    ...(certFile !== undefined && keyFile !== undefined && { tls: { certFile, keyFile } }),
    ...(content !== undefined && {
      contentListen: parseAddress({ text: content, origin: '--content-listen' }),
    }),
    ...(publicUrl !== undefined && {
      publicUrl: parseUrl({ text: publicUrl, origin: '--public-url' }, 'https://files.example.com'),
    }),
    ...(contentPublicUrl !== undefined && {
      contentPublicUrl: parseUrl(
        { text: contentPublicUrl, origin: '--content-public-url' },
        'https://content.example.com',
      ),
    }),
  };
}

function faultsOf(texts: readonly string[]): FaultSettings {
  try {
    return parseFaults(texts);
  } catch (error) {
    if (error instanceof FaultSettingError) throw new ConfigError(`--fault ${error.message}`);
    throw error;
  }
}
