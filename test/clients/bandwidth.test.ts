import { get } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

// At 1 kB a second, the whole file takes longer than any test may.

const FILE_BYTES = 3_000_000;

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;

beforeAll(async () => {
  directory = await temporaryDirectory();
  const args = ['--bandwidth-download', '1kB'];
  program = await startProgram({ dataDirectory: directory.path, args });
});
afterAll(async () => {
  await program.stop();
  await directory.remove();
});

test('davgate --bandwidth-download holds a download back, and sends the rest of it when it is stopped', async () => {
  const address = new URL('file.bin', program.url);
  const headers = { authorization: program.authorization };
  const put = await fetch(address, { method: 'PUT', headers, body: new Uint8Array(FILE_BYTES) });
  expect(put.status).toBe(201);
  let receivedBytes = 0;
  const whole = new Promise<void>((resolve, reject) => {
    get(address, { headers }, (answer) => {
      answer.on('data', (piece: Buffer) => {
        receivedBytes += piece.length;
      });
      answer.once('end', resolve);
    }).once('error', reject);
  });
  await eventually(() => expect(receivedBytes).toBeGreaterThan(0));
  const listing = await fetch(program.url, { method: 'PROPFIND', headers: { ...headers, depth: '1' } });
  expect(listing.status).toBe(207);
  expect(receivedBytes).toBeLessThan(FILE_BYTES / 2);
  expect(await program.stop()).toBe(0);
  await whole;
  expect(receivedBytes).toBe(FILE_BYTES);
});
