import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { connectRaw } from '../support/raw-http.ts';

/** Runs `work` with a davgate that will take requests for `seconds` when it is asked to stop. */
async function withProgram(seconds: number, work: (program: Program) => Promise<void>): Promise<void> {
  const data = await temporaryDirectory();
  const args = ['--drain-seconds', String(seconds)];
  const program = await startProgram({ dataDirectory: data.path, login: false, args });
  try {
    expect(await readiness(program)).toBe('200 {"status":"ready"}');
    await work(program);
  } finally {
    await program.kill();
    await data.remove();
  }
}

async function askToStop(program: Program): Promise<void> {
  process.kill(program.pid, 'SIGTERM');
  const draining = '503 {"status":"unready","reason":"draining"}';
  await eventually(async () => expect(await readiness(program)).toBe(draining));
}

async function readiness({ url }: Program): Promise<string> {
  const answer = await fetch(`${url}.davgate/readyz`);
  return `${answer.status} ${await answer.text()}`;
}

const put = ({ url }: Program, lines: string) =>
  connectRaw(Number(new URL(url).port), `PUT /${randomUUID()} HTTP/1.1\r\nHost: localhost\r\n${lines}`);

test.concurrent('after SIGTERM davgate stores files for --drain-seconds and closes each connection, and a second SIGTERM ends it at once with exit code 1', () =>
  withProgram(600, async (program) => {
    await askToStop(program);
    for (const _ of [1, 2])
      expect(await put(program, 'Content-Length: 1\r\n\r\na').closed()).toMatch(
        /^HTTP\/1\.1 201 [\s\S]*\r\nConnection: close\r\n/,
      );
    process.kill(program.pid, 'SIGTERM');
    expect(await program.ended()).toBe(1);
  }));

// 9 s of draining are longer than the grace period of 8 s.
test.concurrent('a PUT under way at the end of --drain-seconds 9 has the grace period after it, and is stored before davgate ends with exit code 0', () =>
  withProgram(9, async (program) => {
    // Before the signal: on a busy machine the draining may be over soon after it.
    const upload = put(program, 'Expect: 100-continue\r\nContent-Length: 1\r\n\r\n');
    await upload.until('100 Continue');
    process.kill(program.pid, 'SIGTERM');
    await eventually(async () => expect(await isListening(program)).toBe(false));
    upload.send('a');
    expect(await upload.closed()).toContain('HTTP/1.1 201 ');
    expect(await program.ended()).toBe(0);
  }));

async function isListening(program: Program): Promise<boolean> {
  return await readiness(program).then(
    () => true,
    () => false,
  );
}
