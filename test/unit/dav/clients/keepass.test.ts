import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

/** KeePass 2 (`IOConnection.cs`, `FileTransactionEx.cs`): a save is a PUT to a temporary name, DELETE and MOVE. */
const AGENT = 'KeePass/2.55';

let dav: DavServer;
const OLD = pseudoRandomBytes(20_000_000, 1);

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/db.kdbx', OLD);
});
afterEach(() => dav.close());

const send = (method: string, target: string, body?: Uint8Array, headers: Record<string, string> = {}) =>
  dav.send(method, target, { agent: AGENT, headers, ...(body && { body }) });

describe('KeePass', () => {
  test('KeePass checks that a file exists by reading the start of it and disconnecting, which ends the download', async () => {
    const socket = dav.socket();
    socket.write(`GET /db.kdbx HTTP/1.1\r\nHost: x\r\nUser-Agent: ${AGENT}\r\n\r\n`);
    await new Promise((resolve) => socket.once('data', resolve));
    socket.destroy();
    while (dav.files.openReads > 0) await new Promise((resolve) => setImmediate(resolve));
    // The rest of the file was not read.
    expect(dav.files.abandonedReads).toBe(1);
    expect(dav.errors).toEqual([]);
  });

  test('KeePass saves in a transaction: PUT of a temporary file, DELETE of the old file, MOVE', async () => {
    const content = pseudoRandomBytes(30_000, 2);
    expect((await send('PUT', '/db.kdbx.tmp', content)).status).toBe(201);
    expect((await send('DELETE', '/db.kdbx')).status).toBe(204);
    const destination = { Destination: `${dav.url}/db.kdbx` };
    expect((await send('MOVE', '/db.kdbx.tmp', undefined, destination)).status).toBe(201);
    expect(dav.files.paths()).toEqual(['/db.kdbx']);
    expect(dav.files.contentAt(path('/db.kdbx'))?.equals(content)).toBe(true);
  });

  test('KeePass can read the old or the new database at every moment of a failing save', async () => {
    const content = pseudoRandomBytes(30_000, 2);
    dav.files.failNext('write', new FileError('offline', 'the service cannot be reached'));
    expect((await send('PUT', '/db.kdbx.tmp', content)).status).toBe(503);
    expect(dav.files.contentAt(path('/db.kdbx'))?.equals(OLD)).toBe(true);

    await send('PUT', '/db.kdbx.tmp', content);
    dav.files.failNext('move', new FileError('busy', 'the service is busy'));
    const destination = { Destination: `${dav.url}/db.kdbx`, Overwrite: 'T' };
    expect((await send('MOVE', '/db.kdbx.tmp', undefined, destination)).status).toBe(503);
    expect(dav.files.contentAt(path('/db.kdbx'))?.equals(OLD)).toBe(true);
    expect((await send('MOVE', '/db.kdbx.tmp', undefined, destination)).status).toBe(204);
    expect(dav.files.contentAt(path('/db.kdbx'))?.equals(content)).toBe(true);
  });
});
