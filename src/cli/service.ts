import { parseAddress, parseUrl, trustedProxiesOf } from '../config/address.ts';
import { logOf } from '../config/configuration.ts';
import { ConfigError, type Setting, type SettingName, type Settings } from '../config/settings.ts';
import { type Credentials, credentialsFileIn } from '../service/accounts/provision.ts';
import { FaultSettingError, type FaultSettings, parseFaults } from '../service/faults/switches.ts';
import { type RunningService, type ServiceOptions, startService } from '../service/server.ts';
import { systemClock } from '../util/clock.ts';
import { terminalLog } from './log.ts';
import { serviceDirectory } from './service-directory.ts';
import { type StoreValues, storesOf } from './service-stores.ts';
import { endWhenAskedWhileStarting, untilAskedToStop } from './signals.ts';
import { metadataWarnings } from './start-warnings.ts';

/** Values of the options of `davgate service`. */
export interface ServiceValues extends StoreValues {
  readonly listen?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly contentListen?: string;
  readonly publicUrl?: string;
  readonly contentPublicUrl?: string;
  readonly data?: string;
  readonly trustedProxy?: string;
  readonly fault?: readonly string[];
  readonly logLevel?: string;
  readonly logFormat?: string;
  readonly json?: boolean;
}

/** `davgate service`: prints where it and its credentials are, and serves the API until a signal stops it. */
export async function serviceCommand(values: ServiceValues, environment: NodeJS.ProcessEnv): Promise<void> {
  const { listen, data, fault, trustedProxy, metadata } = values;
  const dataDirectory = serviceDirectory(data, environment);
  const stores = storesOf(values, environment);
  const addresses = addressesOf(values);
  terminalLog.configure(logOf(logSettings(values)));
  const hasStarted = endWhenAskedWhileStarting();
  const service = await startService({
    dataDirectory,
    ...stores,
    listen: parseAddress({ text: listen ?? '127.0.0.1:8766', origin: '--listen' }),
    ...addresses,
    clock: systemClock,
    log: terminalLog,
    trustedProxies: trustedProxiesOf(
      trustedProxy === undefined ? undefined : { text: trustedProxy, origin: '--trusted-proxy' },
    ),
    faults: faultsOf(fault ?? []),
  });
  const contentUrl = addresses.contentPublicUrl ?? service.contentUrl;
  const login = await service.provision();
  // Before the start is announced: a program that waits for the announcement may stop the service at once.
  const stopped = untilAskedToStop(addresses.tls ? () => renewCertificate(service) : noteNothingToReload);
  hasStarted();
  for (const warning of metadataWarnings(metadata)) terminalLog.warn(warning);
  console.log(
    values.json
      ? JSON.stringify({ url: service.url, contentUrl, ...login, pid: process.pid })
      : startText(service.url, contentUrl, login, credentialsFileIn(dataDirectory)),
  );
  await stopped;
  await service.close();
}

function logSettings({ logLevel, logFormat }: ServiceValues): Settings {
  const settings = new Map<SettingName, Setting>();
  if (logLevel !== undefined) settings.set('log-level', { text: logLevel, origin: '--log-level' });
  if (logFormat !== undefined) settings.set('log-format', { text: logFormat, origin: '--log-format' });
  return settings;
}

/** Shows secrets on a terminal only: other standard outputs are logged. */
function startText(url: string, contentUrl: string, login: Credentials, file: string): string {
  const { isTTY } = process.stdout;
  const token = isTTY ? login.token : 'TOKEN';
  return `
The storage service is at  ${url}
  ${rolesOf(url, contentUrl)}
  ${isTTY ? credentialsText(login) : `sign-in, app and tokens are in ${file}`}

A drive on it:  DAVGATE_TOKEN=${token} davgate --api-url ${url}${contentFlag(url, contentUrl)}

Press Ctrl+C to stop.
`;
}

function credentialsText({ email, password, appKey, appSecret, token, refreshToken }: Credentials): string {
  return `sign-in        ${email}  ${password ?? '(the password that was set)'}
  app key        ${appKey}
  app secret     ${appSecret}
  access token   ${token}
  refresh token  ${refreshToken}`;
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

/** Throws `ConfigError`. */
function addressesOf(
  values: ServiceValues,
): Pick<ServiceOptions, 'contentListen' | 'contentPublicUrl' | 'publicUrl' | 'tls'> {
  const { tlsCert: certFile, tlsKey: keyFile } = values;
  if (certFile !== undefined && keyFile === undefined)
    throw new ConfigError('--tls-cert: a certificate without its key; give --tls-key too');
  if (keyFile !== undefined && certFile === undefined)
    throw new ConfigError('--tls-key: a key without its certificate; give --tls-cert too');
  const { contentListen: content, publicUrl, contentPublicUrl } = values;
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
