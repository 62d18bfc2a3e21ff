import { expect, test } from 'vitest';
import { type PartRequests, UploadInParts } from '../../../src/webapp/upload-parts.ts';

const MIB = 1024 * 1024;
const FILE = new File([new Uint8Array(33 * MIB)], 'large.bin');

/** An answer other than success. */
class Refused extends Error {
  constructor(readonly status: number) {
    super(`status ${status}`);
  }
}

/** Receives files like the gateway, and lists the requests. The second part is refused once with `status` after 1 MiB of it. */
function gatewayRefusing(status: number): { readonly requests: PartRequests; readonly list: string[] } {
  const list: string[] = [];
  let receivedBytes = 0;
  let isRefused = false;
  const progress = async () => ({ receivedBytes, isStored: receivedBytes === FILE.size });
  const requests: PartRequests = {
    async begin() {
      list.push('begin');
      receivedBytes = 0;
      return { id: 'id' };
    },
    state() {
      list.push('state');
      return progress();
    },
    async part(_, offset, { size }) {
      list.push(`${offset / MIB} MiB`);
      const refuses = offset > 0 && !isRefused;
      receivedBytes = offset + (refuses ? MIB : size);
      if (!refuses) return progress();
      isRefused = true;
      throw new Refused(status);
    },
  };
  return { requests, list };
}

const BEGINNING = ['begin', '0 MiB', '16 MiB'];

test.each([0, 401, 416, 429, 502, 503, 504])(
  'an upload whose part is answered %d goes on after the bytes that have arrived',
  async (status) => {
    const { requests, list } = gatewayRefusing(status);
    const upload = new UploadInParts(FILE);
    await expect(upload.send(requests)).rejects.toThrow(`status ${status}`);
    expect(upload.receivedBytes).toBe(16 * MIB);
    await upload.send(requests);
    expect(list).toEqual([...BEGINNING, 'state', '17 MiB']);
  },
);

test.each([400, 404, 412, 500, 507])(
  'an upload whose part is answered %d is over, and another try begins again',
  async (status) => {
    const { requests, list } = gatewayRefusing(status);
    const upload = new UploadInParts(FILE);
    await expect(upload.send(requests)).rejects.toThrow(`status ${status}`);
    expect(upload.receivedBytes).toBe(0);
    await upload.send(requests);
    expect(list).toEqual([...BEGINNING, ...BEGINNING, '32 MiB']);
  },
);

test('an upload whose state a busy gateway does not tell goes on with a later try', async () => {
  const { requests, list } = gatewayRefusing(503);
  const upload = new UploadInParts(FILE);
  await expect(upload.send(requests)).rejects.toThrow('status 503');
  const state = () => Promise.reject(new Refused(503));
  await expect(upload.send({ ...requests, state })).rejects.toThrow('status 503');
  await upload.send(requests);
  expect(list).toEqual([...BEGINNING, 'state', '17 MiB']);
});

test('an upload whose last answer was lost is stored, and sends nothing again', async () => {
  const { requests, list } = gatewayRefusing(503);
  const upload = new UploadInParts(FILE);
  await expect(upload.send(requests)).rejects.toThrow('status 503');
  await upload.send({ ...requests, state: async () => ({ receivedBytes: FILE.size, isStored: true }) });
  expect(list).toEqual(BEGINNING);
});
