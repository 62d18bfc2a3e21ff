import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Download, FileEntry } from '../../../src/api/remote.ts';
import { headerJson } from '../../../src/api/request.ts';
import type { ByteRange } from '../../../src/util/ranges.ts';
import { joined, piecesOf } from '../../support/byte-source.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  json,
  lose,
  ok,
  refuse,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const DOWNLOAD = 'files/download';
const CONTENT = Buffer.from('0123456789');
const METADATA = fileMetadata('/f', { size: CONTENT.length });

const file: FileEntry = {
  kind: 'file',
  id: String(METADATA['id']),
  path: at('/f'),
  name: 'f',
  rev: String(METADATA['rev']),
  sizeBytes: CONTENT.length,
  modifiedMs: 0,
  committedMs: 0,
};

const result = { 'dropbox-api-result': headerJson(METADATA), 'content-type': 'application/octet-stream' };

/** Serves the whole content or the requested range, like the service. */
const serve: Answer = (response, { headers }) => {
  const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? [];
  if (start === undefined) return void response.writeHead(200, result).end(CONTENT);
  const part = CONTENT.subarray(Number(start), Number(end) + 1);
  const range = `bytes ${start}-${Number(start) + part.length - 1}/${CONTENT.length}`;
  response.writeHead(206, { ...result, 'content-range': range }).end(part);
};

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
  scripted.service.on(DOWNLOAD, serve);
});
afterEach(() => scripted.close());

const open = (range?: ByteRange, signal?: AbortSignal) => scripted.remote.download(file, range, signal);

async function read(download: Download): Promise<string> {
  return (await joined(piecesOf(download))).toString();
}

describe('download requests', () => {
  test('a download asks for exactly one revision, uncompressed, without a body or a content type', async () => {
    expect(await read(await open())).toBe('0123456789');
    const [call] = scripted.service.calls;
    expect(call?.arg).toEqual({ path: 'rev:0123456789abc' });
    expect(call?.headers).toMatchObject({ 'accept-encoding': 'identity', 'content-length': '0' });
    expect(call?.headers['content-type']).toBeUndefined();
    expect(call?.headers.range).toBeUndefined();
  });

  test("a download of a range sends the last byte's offset in Range", async () => {
    expect(await read(await open({ start: 2, end: 5 }))).toBe('234');
    expect(scripted.service.calls[0]?.headers.range).toBe('bytes=2-4');
  });

  test('a download of a range beyond the end returns the bytes up to the end', async () => {
    expect(await read(await open({ start: 8, end: 4096 }))).toBe('89');
  });
});

describe('refusals', () => {
  test.each<[string, Answer, string]>([
    ['416', json(416, { error_summary: 'range/not_satisfiable/..', error: { '.tag': 'other' } }), 'range'],
    ['416 without a body', text(416, ''), 'range'],
    ['409 by its summary', refuse({ '.tag': 'other' }, 'range/not_satisfiable'), 'range'],
    [
      'a revision that is gone',
      refuse({ '.tag': 'path', path: { '.tag': 'not_found' } }, 'path/not_found'),
      'not-found',
    ],
    ['a folder', refuse({ '.tag': 'path', path: { '.tag': 'not_file' } }, 'path/not_file'), 'not-file'],
    [
      'a document that exists only online',
      refuse({ '.tag': 'unsupported_file' }, 'unsupported_file'),
      'restricted',
    ],
  ])('a download refused with %s fails with the right failure', async (_what, answer, failure) => {
    scripted.service.on(DOWNLOAD, answer);
    await expect(open({ start: 20, end: 30 })).rejects.toMatchObject({ failure });
  });
});

describe('answers that do not match the request', () => {
  const head =
    (status: number, headers: Record<string, string>): Answer =>
    (response) => {
      response.writeHead(status, headers).end(CONTENT);
    };

  test.each<[string, Answer, ByteRange | undefined]>([
    ['500', text(500, ''), undefined],
    ['a lost connection', lose, undefined],
    [
      'another revision',
      head(200, { ...result, 'dropbox-api-result': headerJson({ ...METADATA, rev: 'fffffffff' }) }),
      undefined,
    ],
    [
      'another size',
      head(200, { ...result, 'dropbox-api-result': headerJson({ ...METADATA, size: 11 }) }),
      undefined,
    ],
    ['no metadata', head(200, {}), undefined],
    ['the whole file instead of a range', head(200, result), { start: 1, end: 3 }],
    ['another range', head(206, { ...result, 'content-range': 'bytes 2-4/10' }), { start: 1, end: 3 }],
    [
      'a range instead of the whole file',
      head(206, { ...result, 'content-range': 'bytes 0-9/10' }),
      undefined,
    ],
  ])('a download answered with %s is requested again', async (_what, answer, range) => {
    scripted.service.on(DOWNLOAD, answer, serve);
    expect(await read(await open(range))).toBe(range ? '12' : '0123456789');
  });

  test('a download closes the connection of an answer that it discards', async () => {
    const endless: Answer = (response) => {
      response.writeHead(200, {}).write('junk');
    };
    scripted.service.on(DOWNLOAD, endless, serve);
    const download = await open();
    await scripted.service.until(() => scripted.service.aborted === 1);
    expect(await read(download)).toBe('0123456789');
  });
});

describe('truncated downloads', () => {
  const cutAfter =
    (count: number, headers: Record<string, string>): Answer =>
    (response) => {
      response.writeHead(200, { ...result, ...headers });
      response.write(CONTENT.subarray(0, count), () => response.destroy());
    };
  const endAfter =
    (count: number): Answer =>
    (response) => {
      response.writeHead(200, { ...result, connection: 'close' }).end(CONTENT.subarray(0, count));
    };

  test.each<[string, Answer, number]>([
    ['cut, with a length', cutAfter(4, { 'content-length': '10' }), 4],
    ['cut, in chunks', cutAfter(4, { 'transfer-encoding': 'chunked' }), 4],
    ['ended early without an error', endAfter(4), 4],
    ['ended before its first byte', endAfter(0), 0],
  ])(
    'a download that is %s fails with offline after the received bytes, and reports their count',
    async (_how, answer, receivedBytes) => {
      scripted.service.on(DOWNLOAD, answer);
      const chunks: Uint8Array[] = [];
      const reading = (async () => {
        for await (const chunk of piecesOf(await open())) chunks.push(chunk);
      })();
      await expect(reading).rejects.toMatchObject({
        failure: 'offline',
        details: { cut: { receivedBytes } },
      });
      expect(Buffer.concat(chunks).toString()).toBe('0123456789'.slice(0, receivedBytes));
      // The reader holds the hash of the received bytes, so it is the one to request the rest.
      expect(scripted.service.calls).toHaveLength(1);
    },
  );

  test('a range download that ends early reports the count of received bytes', async () => {
    scripted.service.on(DOWNLOAD, (response) => {
      response.writeHead(206, { ...result, 'content-range': 'bytes 2-7/10' }).end(CONTENT.subarray(2, 4));
    });
    const download = await open({ start: 2, end: 8 });
    await expect(read(download)).rejects.toMatchObject({ details: { cut: { receivedBytes: 2 } } });
  });

  test('a download that is longer than announced fails with unavailable', async () => {
    scripted.service.on(DOWNLOAD, (response) => {
      response.writeHead(200, result).end(Buffer.concat([CONTENT, CONTENT]));
    });
    await expect(read(await open())).rejects.toMatchObject({ failure: 'unavailable' });
  });
});

describe('aborted downloads', () => {
  const endless: Answer = (response) => {
    response.writeHead(200, result);
    response.write('01');
  };

  test('a download closes its connection when its signal is aborted after the first bytes', async () => {
    const { service } = scripted;
    service.on(DOWNLOAD, endless);
    const abort = new AbortController();
    for await (const chunk of piecesOf(await open(undefined, abort.signal))) {
      expect(chunk).toHaveLength(2);
      break;
    }
    abort.abort(new Error('the client has gone'));
    await service.until(() => service.aborted === 1);
  });

  test('a download closes its connection when its signal is aborted during a wait for bytes', async () => {
    const { service } = scripted;
    service.on(DOWNLOAD, endless);
    const abort = new AbortController();
    const reading = read(await open(undefined, abort.signal));
    const reason = new Error('the client has gone');
    abort.abort(reason);
    await expect(reading).rejects.toBe(reason);
    await service.until(() => service.aborted === 1);
  });

  test('a download closes its connection when its signal is aborted before it is read', async () => {
    const { service } = scripted;
    service.on(DOWNLOAD, endless);
    const abort = new AbortController();
    const download = await open(undefined, abort.signal);
    const reason = new Error('the client has gone');
    abort.abort(reason);
    await service.until(() => service.aborted === 1);
    await expect(read(download)).rejects.toBe(reason);
  });
});

test('a stat is answered while 40 downloads are open', async () => {
  const { service, remote } = scripted;
  service.on('files/get_metadata', ok(tagged('file', METADATA)));
  const slow = await Promise.all(Array.from({ length: 40 }, () => open()));
  expect(await remote.stat(at('/f'))).toMatchObject({ name: 'f' });
  expect(await Promise.all(slow.map(read))).toEqual(Array(40).fill('0123456789'));
});
