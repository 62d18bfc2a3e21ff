import type { Config } from '../config/configuration.ts';
import { METADATA_VARIABLE, type Settings } from '../config/settings.ts';
import { isLoopback } from '../util/networks.ts';

/** How davgate can be reached from outside. */
type Surface = Pick<Config, 'listen' | 'tls' | 'trustedProxies'>;

/** Returns a line for the log for each setting that lets others read secrets. */
export function startWarnings(flags: Settings, config: Surface): readonly string[] {
  return [...secretsInFlags(flags), ...clearText(config)];
}

/** Warns of secrets in flags: every user of the machine can read command lines. */
function secretsInFlags(flags: Settings): readonly string[] {
  const redis = flags.get('redis')?.text ?? '';
  return [
    ...(flags.has('password')
      ? [readableByAll('--password', '--password-file FILE or DAVGATE_PASSWORD')]
      : []),
    ...(flags.has('token') ? [readableByAll('--token', '--token-file FILE or DAVGATE_TOKEN')] : []),
    ...(PASSWORD_IN_URL.test(redis) ? [readableByAll('--redis', 'DAVGATE_REDIS_URL')] : []),
  ];
}

/** Returns the warning of a gateway's start with the variable of `davgate service`, whose database it does not use. */
export function unusedMetadataWarnings(
  environment: NodeJS.ProcessEnv,
  embeddedCount: number,
): readonly string[] {
  if (environment[METADATA_VARIABLE] === undefined || embeddedCount === 0) return [];
  return [
    `${METADATA_VARIABLE}: only davgate service uses it; the embedded service of this davgate keeps accounts and metadata in the data directory`,
  ];
}

const PASSWORD_IN_URL = /:[^/@]+@|[?&]password=/;

/** Returns the warning of `davgate service`, if `--metadata` has a password. */
export function metadataWarnings(metadata: string | undefined): readonly string[] {
  const hasPassword = metadata !== undefined && PASSWORD_IN_URL.test(metadata);
  return hasPassword ? [readableByAll('--metadata', `PGPASSWORD or ${METADATA_VARIABLE}`)] : [];
}

function readableByAll(flag: string, better: string): string {
  return `${flag}: every user of this machine can read command lines; use ${better}`;
}

function clearText({ listen, tls, trustedProxies }: Surface): readonly string[] {
  if (!('host' in listen)) return [];
  const { host } = listen;
  if (tls || isLoopback(host) || trustedProxies.cidrs.length > 0) return [];
  return [
    `${host} can be reached from outside, and passwords and files cross the network unencrypted; give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with https, or name the proxy with --trusted-proxy`,
  ];
}
