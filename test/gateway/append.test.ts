import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';

// The service cannot append to a file, so the gateway reads the old content and stores all of it again.

const MIB = 1024 * 1024;
const BYTES = pseudoRandomBytes(9 * MIB, 3);
/** The end of the first part: in the middle of a block of the service. */
const CUT = 5 * MIB + 7;

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

describe.each([
  ['write-through', false],
  ['write-back', true],
])('appends with %s', (mode, writeBack) => {
  let gateway: TestGateway;
  const target = `/${mode}.bin`;
  beforeAll(async () => {
    gateway = await startTestGateway({ service, writeBack });
  });
  afterAll(() => gateway.close());

  const send = (method: string, headers: Record<string, string>, bytes: Buffer) =>
    fetch(gateway.url + target, { method, headers, body: new Uint8Array(bytes) });

  test('a file of two blocks that gets its rest by PUT with Content-Range and by PATCH reads back equal', async () => {
    expect((await send('PUT', {}, BYTES.subarray(0, CUT))).status).toBe(201);
    const middle = CUT + MIB;
    const put = { 'content-range': `bytes ${CUT}-${middle - 1}/${middle}` };
    expect((await send('PUT', put, BYTES.subarray(CUT, middle))).status).toBe(204);
    const patch = {
      'content-type': 'application/x-sabredav-partialupdate',
      'x-update-range': `bytes=${middle}-`,
    };
    expect((await send('PATCH', patch, BYTES.subarray(middle))).status).toBe(204);
    // The answer to the last part was lost, and it comes again.
    expect((await send('PATCH', patch, BYTES.subarray(middle))).status).toBe(416);
    const read = Buffer.from(await (await fetch(gateway.url + target)).arrayBuffer());
    expect(read.equals(BYTES)).toBe(true);
  });

  test('of two appends at the same time one answers 412, or both are in the file one after the other', async () => {
    const headers = { 'content-type': 'application/x-sabredav-partialupdate', 'x-update-range': 'append' };
    await send('PUT', {}, Buffer.from('start'));
    const answers = await Promise.all(['A', 'B'].map((text) => send('PATCH', headers, Buffer.from(text))));
    const statuses = answers.map(({ status }) => status).sort();
    const text = await (await fetch(gateway.url + target)).text();
    if (statuses[1] === 204) expect(['startAB', 'startBA']).toContain(text);
    else expect([statuses, text.length]).toEqual([[204, 412], 6]);
  });
});
