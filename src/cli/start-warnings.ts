import type { Config } from '../config/configuration.ts';
import type { Settings } from '../config/settings.ts';
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
  const instead = [
    ...(flags.has('password') ? [['--password', '--password-file FILE or DAVGATE_PASSWORD']] : []),
    ...(flags.has('token') ? [['--token', '--token-file FILE or DAVGATE_TOKEN']] : []),
    ...(/:[^/@]+@/.test(redis) ? [['--redis', 'DAVGATE_REDIS_URL']] : []),
  ];
  return instead.map(
    ([flag, better]) => `${flag}: every user of this machine can read command lines; use ${better}`,
  );
}

function clearText({ listen, tls, trustedProxies }: Surface): readonly string[] {
  if (!('host' in listen)) return [];
  const { host } = listen;
  if (tls || isLoopback(host) || trustedProxies.cidrs.length > 0) return [];
  return [
    `${host} can be reached from outside, and passwords and files cross the network unencrypted; give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with https, or name the proxy with --trusted-proxy`,
  ];
}
