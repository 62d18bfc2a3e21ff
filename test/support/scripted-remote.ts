import { openConnection, type RemoteOptions, remoteOf } from '../../src/api/client.ts';
import { uploadCallsOf } from '../../src/api/write/upload-routes.ts';
import type { Log, LogFields } from '../../src/util/log.ts';
import { type Path, pathOf } from '../../src/util/path.ts';
import { ManualClock } from './manual-clock.ts';
import { ScriptedService } from './scripted-service.ts';

export const TOKEN = 'sl.secret-token-1';

/** Returns the path of a text. */
export const at = (text: string): Path => pathOf(text.split('/').filter((name) => name !== ''));

interface Logged {
  readonly event: string;
  readonly fields: LogFields | undefined;
}

/** Returns a log that keeps its lines. */
function keptLog(): Log & { readonly lines: Logged[] } {
  const lines: Logged[] = [];
  const keep = (event: string, fields?: LogFields) => void lines.push({ event, fields });
  return { lines, info: keep, warn: keep, error: keep };
}

/**
 * Opens a `Remote` and its upload calls on a scripted service. The clock does not advance. Retries come at
 * once (`random` is 0) unless the service asks for a wait.
 */
export async function openScripted(options: Partial<RemoteOptions> = {}) {
  const service = await ScriptedService.start();
  const clock = new ManualClock();
  const log = keptLog();
  const connection = openConnection({
    apiUrl: service.url,
    contentUrl: service.url,
    notifyUrl: service.url,
    credentials: { token: TOKEN },
    root: '',
    clock,
    log,
    random: () => 0,
    ...options,
  });
  const remote = remoteOf(connection);
  const uploads = uploadCallsOf(connection.client);
  const close = async () => {
    await remote.close();
    await service.close();
  };
  return { service, clock, log, remote, uploads, close };
}

export type Scripted = Awaited<ReturnType<typeof openScripted>>;
