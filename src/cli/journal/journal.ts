import { createWriteStream, existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createJournalAdmin, type JournalAdmin, type KeptOutcome } from '../../app/journal-admin.ts';
import { type Config, controlSocketIn, resolveConfig } from '../../config/configuration.ts';
import type { Settings } from '../../config/settings.ts';
import { StateInUse } from '../../state/errors.ts';
import type { Journals } from '../../state/journal.ts';
import { openSqliteJournals } from '../../state/sqlite/journal/journals.ts';
import { systemClock } from '../../util/clock.ts';
import { PACKAGE_ROOT } from '../../util/package.ts';
import { ControlClient } from '../control-client.ts';
import { loadSettings } from '../load-settings.ts';
import { terminalLog } from '../log.ts';
import { asPlainText } from '../table.ts';
import { journalJson, journalTable } from './journal-table.ts';
import { askRunningJournal } from './running-journal.ts';

/** `davgate journal`: lists pending and lost writes. */
export async function listWrites(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { say, isJson }: { readonly say: (line: string) => void; readonly isJson: boolean },
): Promise<void> {
  const writes = await withJournalAdmin(flags, environment, (admin) => admin.list());
  say(isJson ? journalJson(writes) : journalTable(writes));
}

/** `davgate journal export`: copies the content of a write to a new file. Returns the exit code. */
export function exportWrite(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  { id, file }: { readonly id: string; readonly file: string },
): Promise<number> {
  return withJournalAdmin(flags, environment, (admin) => exportTo(admin, id, file));
}

/** `davgate journal retry`. Returns the exit code. */
export function retryWrite(flags: Settings, environment: NodeJS.ProcessEnv, id: string): Promise<number> {
  return withJournalAdmin(flags, environment, async (admin) =>
    printOutcome(await admin.retry(id), ({ state }) => RETRIED[state]),
  );
}

/** `davgate journal discard`. Returns the exit code. */
export function discardWrite(flags: Settings, environment: NodeJS.ProcessEnv, id: string): Promise<number> {
  return withJournalAdmin(flags, environment, async (admin) =>
    printOutcome(await admin.discard(id), () => 'was deleted'),
  );
}

const RETRIED = {
  waiting: 'is at the storage service',
  lost: 'is pending again and no longer lost',
} as const;

/** Prints the outcome of a command. Returns the exit code. */
function printOutcome(
  outcome: KeptOutcome,
  done: (write: NonNullable<KeptOutcome['write']>) => string,
): number {
  const { write, refused } = outcome;
  if (write && refused === undefined) {
    console.log(`${asPlainText(write.path ?? write.id)} ${done(write)}.`);
    return 0;
  }
  const what = write ? `${asPlainText(write.path ?? write.id)}: ` : '';
  process.stderr.write(`davgate: ${what}${asPlainText(refused ?? '')}\n`);
  return 1;
}

async function exportTo(admin: JournalAdmin, id: string, file: string): Promise<number> {
  const found = await admin.body(id);
  if (!found) {
    process.stderr.write(
      `davgate: no write, or more than one, has the id ${asPlainText(id)}; davgate journal lists them\n`,
    );
    return 1;
  }
  if (existsSync(file)) {
    process.stderr.write(`davgate: ${file} already exists; give the name of a new file\n`);
    return 1;
  }
  try {
    await pipeline(found.bytes, createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // the file system's own errors
    if (code !== 'EEXIST') await rm(file, { force: true });
    process.stderr.write(`davgate: cannot write ${file}: ${code ?? String(error)}\n`);
    return 1;
  }
  console.log(
    `${found.write.sizeBytes} bytes of ${asPlainText(found.write.path ?? found.write.id)} are in ${file}.`,
  );
  return 0;
}

/** Runs `work` on the running davgate's journal, or on the journal that this process opens for it. */
async function withJournalAdmin<T>(
  flags: Settings,
  environment: NodeJS.ProcessEnv,
  work: (admin: JournalAdmin) => Promise<T>,
): Promise<T> {
  const { settings, file } = await loadSettings(flags, environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  const journals = await openedJournals(config);
  if (journals === 'running')
    return work(askRunningJournal(new ControlClient(controlSocketIn(config), config.dataDirectory)));
  try {
    const each = config.drives.map(
      async ({ name }) => [name, journals && { journal: await journals.drive(name) }] as const,
    );
    const drives = (await Promise.all(each)).flatMap(([name, drive]) =>
      drive ? [[name, drive] as const] : [],
    );
    return await work(createJournalAdmin(new Map(drives), systemClock));
  } finally {
    await journals?.close();
  }
}

/** Opens the journals; `'running'` if a running davgate has them open, `undefined` if there are none. */
async function openedJournals({ dataDirectory }: Config): Promise<Journals | 'running' | undefined> {
  const journal = join(dataDirectory, 'journal');
  if (!existsSync(journal)) return undefined;
  try {
    const lostAndFound = join(dataDirectory, 'lost-and-found');
    return await openSqliteJournals({ journal, lostAndFound }, terminalLog);
  } catch (error) {
    if (error instanceof StateInUse) return 'running';
    throw error;
  }
}
