import { isLoopback } from '../config/address.ts';
import type { Settings } from '../config/settings.ts';
import type { Config } from '../config.ts';

/** What works, but lets others read secrets: one line each for the log. */
export function startWarnings(flags: Settings, config: Pick<Config, 'listen' | 'tls'>): readonly string[] {
  return [...secretsInFlags(flags), ...clearText(config)];
}

/** A command line is in the list of processes, for every user of the machine. */
function secretsInFlags(flags: Settings): readonly string[] {
  const secrets = ['password', 'token'] as const;
  return secrets
    .filter((name) => flags.has(name))
    .map(
      (name) =>
        `--${name}: every user of this machine can read a command line; use --${name}-file FILE or a variable`,
    );
}

function clearText({ listen: { host }, tls }: Pick<Config, 'listen' | 'tls'>): readonly string[] {
  if (tls || isLoopback(host)) return [];
  return [
    `${host} can be reached from outside, and passwords and files cross the network in clear; give --tls-cert and --tls-key, or listen on 127.0.0.1 behind a proxy with https`,
  ];
}
