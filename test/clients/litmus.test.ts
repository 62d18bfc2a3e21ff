import { afterAll, beforeAll, describe, test } from 'vitest';
import { passLitmus, SUITES } from '../support/litmus.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;

let writeBack: Program;
let writeBackData: Awaited<ReturnType<typeof temporaryDirectory>>;

let withoutLogin: Program;
let withoutLoginData: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, writeBackData, withoutLoginData] = await Promise.all([
    temporaryDirectory(),
    temporaryDirectory(),
    temporaryDirectory(),
  ]);
  program = await startProgram({ dataDirectory: data.path });
  writeBack = await startProgram({
    dataDirectory: writeBackData.path,
    args: ['--write-mode', 'back'],
  });
  withoutLogin = await startProgram({ dataDirectory: withoutLoginData.path, login: false });
});
afterAll(async () => {
  await Promise.all([program?.stop(), writeBack?.stop(), withoutLogin?.stop()]);
  await Promise.all([data.remove(), writeBackData.remove(), withoutLoginData.remove()]);
});

describe('litmus', () => {
  test.each(SUITES)('all tests of the litmus suite $name pass without a warning', (suite) =>
    passLitmus([suite], [program.url, program.user, program.password]),
  );

  test.each(SUITES)('all tests of the litmus suite $name pass without a warning with write-back', (suite) =>
    passLitmus([suite], [writeBack.url, writeBack.user, writeBack.password]),
  );

  // The suite's own sockets send no login, so only here it really tests "Expect: 100-continue".
  test('all tests of the litmus suite http pass without a warning on a drive without a login', () =>
    passLitmus([SUITES[4]], [withoutLogin.url]));
});
