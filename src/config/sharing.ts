import type { Config } from './configuration.ts';
import { embeddedDrives } from './drive-config.ts';
import { ConfigError, type Settings } from './settings.ts';

/**
 * Refuses drives of the embedded service beside a Redis: each gateway would have files of its own, under the locks of all.
 * Only for a davgate that serves; `davgate locks` needs no service. Throws `ConfigError`.
 */
export function refuseUnsharedFiles(settings: Settings, { drives }: Pick<Config, 'drives'>): void {
  const redis = settings.get('redis');
  const [drive] = embeddedDrives(drives);
  if (!redis || !drive) return;
  const which = drives.length > 1 ? `drive ${drive.name} has its files` : 'the files are';
  throw new ConfigError(
    `${redis.origin}: ${which} in the embedded service, which no other gateway can use; ` +
      'run davgate service on its own and give all gateways its --api-url and --token, or leave the Redis out',
  );
}
