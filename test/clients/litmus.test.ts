import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { passLitmus, SUITES } from '../support/litmus.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;

let writeBack: Program;
let writeBackData: Awaited<ReturnType<typeof temporaryDirectory>>;

let withoutLogin: Program;
let withoutLoginData: Awaited<ReturnType<typeof temporaryDirectory>>;

/** A user with two drives, each a folder at the address; the second one shows a folder of its own. */
let severalDrives: Program;
let severalDrivesData: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, writeBackData, withoutLoginData, severalDrivesData] = await Promise.all([
    temporaryDirectory(),
    temporaryDirectory(),
    temporaryDirectory(),
    temporaryDirectory(),
  ]);
  program = await startProgram({ dataDirectory: data.path });
  writeBack = await startProgram({
    dataDirectory: writeBackData.path,
    args: ['--write-mode', 'back'],
  });
  const config = join(severalDrivesData.path, 'davgate.json');
  const drives = ['one', { drive: 'two', root: '/People/Ann' }];
  const users = [{ name: 'tester', password: 'pass word:1', drives }];
  await writeFile(config, JSON.stringify({ drives: { one: {}, two: {} }, users }), { mode: 0o600 });
  severalDrives = await startProgram({
    dataDirectory: severalDrivesData.path,
    login: 'configured',
    args: ['--config', config],
  });
  withoutLogin = await startProgram({ dataDirectory: withoutLoginData.path, login: false });
});
afterAll(async () => {
  await Promise.all([program?.stop(), writeBack?.stop(), withoutLogin?.stop(), severalDrives?.stop()]);
  await Promise.all([
    data.remove(),
    writeBackData.remove(),
    withoutLoginData.remove(),
    severalDrivesData.remove(),
  ]);
});

describe('litmus', () => {
  test.each(SUITES)('all tests of the litmus suite $name pass without a warning', (suite) =>
    passLitmus([suite], [program.url, program.user, program.password]),
  );

  test.each(SUITES)('all tests of the litmus suite $name pass without a warning with write-back', (suite) =>
    passLitmus([suite], [writeBack.url, writeBack.user, writeBack.password]),
  );

  test.each(SUITES.slice(0, 4))(
    'all tests of the litmus suite $name pass without a warning in the root folder of a user with two drives',
    (suite) => passLitmus([suite], [`${severalDrives.url}two/`, severalDrives.user, severalDrives.password]),
  );

  // The suite's own sockets send no login, so only here it really tests "Expect: 100-continue".
  test('all tests of the litmus suite http pass without a warning on a drive without a login', () =>
    passLitmus([SUITES[4]], [withoutLogin.url]));
});
