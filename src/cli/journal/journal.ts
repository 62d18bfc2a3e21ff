import { createWriteStream, existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createJournalAdmin, type JournalAdmin, type KeptOutcome } from '../../app/journal-admin.ts';
import { type Config, controlSocketIn, resolveConfig } from '../../config/configuration.ts';
import { ConfigError } from '../../config/settings.ts';
import { StateInUse } from '../../state/errors.ts';
import type { Journals } from '../../state/journal.ts';
import { openSqliteJournals } from '../../state/sqlite/journal/journals.ts';
import { systemClock } from '../../util/clock.ts';
import { PACKAGE_ROOT } from '../../util/package.ts';
import { settingsOfArguments } from '../arguments.ts';
import { ControlClient } from '../control-client.ts';
import { loadSettings } from '../load-settings.ts';
import { terminalLog } from '../log.ts';
import { asPlainText } from '../table.ts';
import { journalTable } from './journal-table.ts';
import { askRunningJournal } from './running-journal.ts';

const HELP = `Lists and handles acknowledged writes that are not at the storage service: pending writes, which wait in the journal
(--write-mode back), and lost writes in the lost-and-found folder, which the service refused or whose record was lost.

Usage: davgate journal [options of serve]                  list the writes: state, id, time, bytes, path, reason
       davgate journal export ID FILE [options of serve]   copy the content of a write to a new file
       davgate journal retry ID [options of serve]         send a pending write now, or restore a lost one to its path
       davgate journal discard ID [options of serve]       delete a write and its content permanently

Reads the data directory (--data-dir) of serve, whether davgate is running or not. An ID may be shortened while it is
unique. A lost write is restored only if nothing exists at its path; otherwise export it. If davgate is stopped, pending
writes are sent at the next start.

Exit code 0: done; 1: not done; 2: the settings or arguments cannot be used.
`;

/** The arguments of each command. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  export: ['ID', 'FILE'],
  retry: ['ID'],
  discard: ['ID'],
};

/** `davgate journal`: lists pending and lost writes, or handles one of them. Returns the exit code. */
export async function journalCommand(
  args: readonly string[],
  environment: NodeJS.ProcessEnv,
): Promise<number> {
  if (args.includes('--help')) {
    console.log(HELP);
    return 0;
  }
  const [first = ''] = args;
  const wanted = WORDS[first];
  if (!wanted && first !== '' && !first.startsWith('-'))
    throw new ConfigError(`journal ${first}: no such command; davgate journal --help lists them`);
  const words = wanted ? args.slice(1, 1 + wanted.length) : [];
  const missing = wanted?.find((_, index) => words[index] === undefined || words[index]?.startsWith('--'));
  if (missing)
    throw new ConfigError(`journal ${first}: ${missing} is missing; davgate journal lists the ids`);
  const rest = wanted ? args.slice(1 + wanted.length) : args;
  const { settings, file } = await loadSettings(settingsOfArguments(rest), environment);
  const config = resolveConfig(settings, file, environment, PACKAGE_ROOT);
  const [id = '', target = ''] = words;
  return withJournalAdmin(config, (admin) => run(admin, { command: first, id, target }));
}

async function run(
  admin: JournalAdmin,
  { command, id, target }: { readonly command: string; readonly id: string; readonly target: string },
): Promise<number> {
  if (command === 'export') return exportTo(admin, id, target);
  if (command === 'retry') return printOutcome(await admin.retry(id), ({ state }) => RETRIED[state]);
  if (command === 'discard') return printOutcome(await admin.discard(id), () => 'was deleted');
  console.log(journalTable(await admin.list()));
  return 0;
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
async function withJournalAdmin<T>(config: Config, work: (admin: JournalAdmin) => Promise<T>): Promise<T> {
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
