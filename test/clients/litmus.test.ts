import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { combinations } from '../support/effort.ts';
import { passLitmus, SUITES } from '../support/litmus.ts';
import { cheapHash, PASSWORD, type Program, startProgram, temporaryDirectory } from '../support/program.ts';

let data: Awaited<ReturnType<typeof temporaryDirectory>>;
beforeAll(async () => {
  data = await temporaryDirectory();
});
afterAll(() => data.remove());

const BACK = ['--write-mode', 'back'];

/** Starts davgate for a user with two drives, each a folder at the address; the second one shows a folder of its own. */
async function startSeveralDrives(dataDirectory: string, args: readonly string[] = []): Promise<Program> {
  const config = join(data.path, 'davgate.json');
  const drives = ['one', { drive: 'two', root: '/People/Ann' }];
  const users = [{ name: 'tester', 'password-hash': cheapHash(PASSWORD), drives }];
  await writeFile(config, JSON.stringify({ drives: { one: {}, two: {} }, users }));
  return startProgram({ dataDirectory, login: 'configured', args: ['--config', config, ...args] });
}

interface Place {
  /** The end of the titles. */
  readonly name: string;
  readonly folder: string;
  start(dataDirectory: string): Promise<Program>;
}

const TWO = 'in the root folder of a user with two drives';
const PLACES: readonly Place[] = [
  { name: 'in the only drive', folder: '', start: (dataDirectory) => startProgram({ dataDirectory }) },
  {
    name: 'in the only drive with write-back',
    folder: '',
    start: (dataDirectory) => startProgram({ dataDirectory, args: BACK }),
  },
  { name: TWO, folder: 'two/', start: startSeveralDrives },
  {
    name: `${TWO} with write-back`,
    folder: 'two/',
    start: (dataDirectory) => startSeveralDrives(dataDirectory, BACK),
  },
];

describe.each(combinations(PLACES))('litmus $name', ({ name, folder, start }) => {
  let program: Program;
  beforeAll(async () => {
    program = await start(join(data.path, name));
  });
  afterAll(() => program?.stop());

  test.each(SUITES)(`all tests of the litmus suite $name pass without a warning ${name}`, (suite) =>
    passLitmus([suite], [`${program.url}${folder}`, program.user, program.password]),
  );
});

// The suite's own sockets send no login, so only here it really tests "Expect: 100-continue".
test('all tests of the litmus suite http pass without a warning on a drive without a login', async () => {
  const program = await startProgram({ dataDirectory: join(data.path, 'without a login'), login: false });
  await passLitmus([SUITES[4]], [program.url]);
  await program.stop();
});
