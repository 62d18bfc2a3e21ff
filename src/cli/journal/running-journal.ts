import type { JournalAdmin, KeptOutcome, KeptWrite } from '../../app/journal-admin.ts';
import type { ControlClient } from '../control-client.ts';

/** Returns a journal admin that passes each call to the running davgate. */
export function askRunningJournal(client: ControlClient): JournalAdmin {
  const at = (path: string, id: string) => `${path}?${new URLSearchParams({ id })}`;
  // The casts: the other end is davgate, and answers with the results of its own `JournalAdmin`.
  const outcome = async (method: string, path: string) => (await client.ask(method, path)) as KeptOutcome;
  const list = async () => (await client.ask('GET', '/journal')) as readonly KeptWrite[];
  return {
    list,
    async body(id) {
      const found = (await client.ask('GET', at('/journal/write', id))) as KeptWrite | undefined;
      const bytes = found && (await client.bytes(at('/journal/body', found.id)));
      return found && bytes && { write: found, bytes };
    },
    retry: (id) => outcome('POST', at('/journal/retry', id)),
    discard: (id) => outcome('DELETE', at('/journal', id)),
  };
}
