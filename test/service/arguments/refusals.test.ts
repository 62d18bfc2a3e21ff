import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Storage,
  StorageError,
  type StorageRefusal,
  type StoredFile,
} from '../../../src/service/storage/storage.ts';
import { type Answered, headerJson, refusal, refusalIn, send } from '../../support/service-client.ts';
import { type ServiceOver, serviceOver } from '../../support/service-over.ts';

/** The outcome of every call of the storage. */
let next: () => unknown = () => undefined;
const loggedErrors: Record<string, unknown>[] = [];
let service: ServiceOver;

// The router over a storage that refuses on demand, for refusals that need a terabyte or a broken disk.
beforeAll(async () => {
  const log = {
    info: () => undefined,
    warn: () => undefined,
    error: (event: string, fields = {}) => loggedErrors.push({ event, ...fields }),
  };
  service = await serviceOver(new Proxy({}, { get: () => () => next() }) as Storage, log);
});
afterAll(() => service.close());

function refuse(storageRefusal: StorageRefusal, side?: 'from' | 'to'): void {
  next = () => {
    throw new StorageError(storageRefusal, side);
  };
}

const ARGUMENTS: Record<string, object> = {
  'files/get_metadata': { path: '/x' },
  'files/list_folder': { path: '' },
  'files/list_folder/continue': { cursor: 'x' },
  'files/list_folder/longpoll': { cursor: 'x' },
  'files/upload': { path: '/x' },
  'files/upload_session/start': {},
  'files/upload_session/append_v2': { cursor: { session_id: 'x', offset: 0 } },
  'files/upload_session/finish': { cursor: { session_id: 'x', offset: 0 }, commit: { path: '/x' } },
  'files/upload_session/finish_batch_v2': {
    entries: [{ cursor: { session_id: 'x', offset: 0 }, commit: { path: '/x' } }],
  },
  'files/download': { path: '/x' },
  'files/get_temporary_link': { path: '/x' },
  'files/create_folder_v2': { path: '/x' },
  'files/delete_v2': { path: '/x' },
  'files/permanently_delete': { path: '/x' },
  'files/move_v2': { from_path: '/x', to_path: '/y' },
  'files/copy_v2': { from_path: '/x', to_path: '/y' },
  'files/list_revisions': { path: '/x' },
  'files/restore': { path: '/x', rev: '0123456789' },
  'users/get_space_usage': {},
};

function call(name: string): Promise<Answered> {
  const isContent = /\/(upload|start|append_v2|finish|download)$/.test(name);
  const argument = ARGUMENTS[name] ?? {};
  return send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: {
      ...(name !== 'files/list_folder/longpoll' && { authorization: `Bearer ${service.token}` }),
      ...(isContent ? { 'dropbox-api-arg': headerJson(argument) } : { 'content-type': 'application/json' }),
      ...(isContent && name !== 'files/download' && { 'content-type': 'application/octet-stream' }),
    },
    ...(name === 'files/download' ? {} : { body: isContent ? 'x' : JSON.stringify(argument) }),
  });
}

const WRITES = Object.keys(ARGUMENTS).filter((name) =>
  /upload|finish|folder_v2|delete|move|copy|restore/.test(name),
);

test.each(WRITES)('%s during write contention answers 429 as JSON with Retry-After', async (name) => {
  refuse({ kind: 'write', tag: 'too_many_write_operations' });
  const answered = await call(name);
  expect(refusalIn(answered)).toEqual(
    refusal(429, 'too_many_write_operations', {
      reason: { '.tag': 'too_many_write_operations' },
      retry_after: 1,
    }),
  );
  expect(answered.headers.get('retry-after')).toBe('1');
});

describe('refusals of the storage by function', () => {
  const write = (tag: 'insufficient_space' | 'no_write_permission') => ({ kind: 'write', tag }) as const;
  test.each<[string, StorageRefusal, 'from' | 'to', string]>([
    ['files/list_folder/continue', { kind: 'cursor', tag: 'reset' }, 'to', 'reset'],
    ['files/list_folder/longpoll', { kind: 'cursor', tag: 'reset' }, 'to', 'reset'],
    ['files/upload', write('insufficient_space'), 'to', 'path/insufficient_space'],
    ['files/upload', { kind: 'body', tag: 'payload_too_large' }, 'to', 'payload_too_large'],
    ['files/upload_session/start', write('insufficient_space'), 'to', 'insufficient_space'],
    ['files/upload_session/append_v2', write('insufficient_space'), 'to', 'insufficient_space'],
    ['files/upload_session/append_v2', { kind: 'session', tag: 'too_large' }, 'to', 'too_large'],
    ['files/upload_session/finish', write('insufficient_space'), 'to', 'path/insufficient_space'],
    ['files/upload_session/finish', { kind: 'session', tag: 'too_large' }, 'to', 'lookup_failed/too_large'],
    [
      'files/upload_session/finish',
      { kind: 'session', tag: 'concurrent_session_invalid_offset' },
      'to',
      'lookup_failed/concurrent_session_invalid_offset',
    ],
    ['files/create_folder_v2', write('insufficient_space'), 'to', 'path/insufficient_space'],
    ['files/delete_v2', write('no_write_permission'), 'to', 'path_write/no_write_permission'],
    ['files/delete_v2', { kind: 'relocation', tag: 'too_many_files' }, 'to', 'too_many_files'],
    ['files/move_v2', write('insufficient_space'), 'to', 'to/insufficient_space'],
    ['files/move_v2', write('no_write_permission'), 'from', 'from_write/no_write_permission'],
    ['files/move_v2', { kind: 'lookup', tag: 'not_file' }, 'from', 'from_lookup/not_file'],
    ['files/copy_v2', { kind: 'relocation', tag: 'insufficient_quota' }, 'to', 'insufficient_quota'],
    ['files/copy_v2', { kind: 'relocation', tag: 'too_many_files' }, 'to', 'too_many_files'],
    ['files/restore', write('insufficient_space'), 'to', 'path_write/insufficient_space'],
    ['files/restore', { kind: 'conflict', tag: 'folder' }, 'to', 'path_write/conflict/folder'],
    ['files/restore', { kind: 'lookup', tag: 'malformed_path' }, 'to', 'path_lookup/malformed_path'],
  ])("%s answers the storage's refusal %j (%s) with %s", async (name, storageRefusal, side, summary) => {
    refuse(storageRefusal, side);
    const answered = refusalIn(await call(name));
    expect(answered).toMatchObject({ status: 409, summary });
    expect(answered['error']).toMatchObject({ '.tag': summary.split('/')[0] });
  });

  test('finish_batch_v2 answers an entry with contention by the tag too_many_write_operations', async () => {
    next = () => [new StorageError({ kind: 'write', tag: 'too_many_write_operations' })];
    expect((await call('files/upload_session/finish_batch_v2')).json).toEqual({
      entries: [{ '.tag': 'failure', failure: { '.tag': 'too_many_write_operations' } }],
    });
  });
});

describe('jobs whose storage refuses', () => {
  const launch = async () => {
    const answered = await post('files/delete_batch', { entries: [{ path: '/x' }, { path: '/y' }] });
    return answered.json as { async_job_id: string };
  };
  const ended = async ({ async_job_id }: { async_job_id: string }): Promise<Answered> => {
    const asked = await post('files/delete_batch/check', { async_job_id });
    const isRunning = (asked.json as { '.tag'?: string })['.tag'] === 'in_progress';
    return isRunning ? await ended({ async_job_id }) : asked;
  };

  test('a job refused as a whole answers that refusal for each of its entries', async () => {
    refuse({ kind: 'write', tag: 'too_many_write_operations' });
    const failure = { '.tag': 'failure', failure: { '.tag': 'too_many_write_operations' } };
    expect((await ended(await launch())).json).toEqual({ '.tag': 'complete', entries: [failure, failure] });
    refuse({ kind: 'write', tag: 'insufficient_space' });
    const full = { '.tag': 'path_write', path_write: { '.tag': 'insufficient_space' } };
    const { json } = await ended(await launch());
    expect(json).toMatchObject({ entries: [{ failure: full }, { failure: full }] });
  });

  test('a job that throws answers internal_error and logs the error', async () => {
    next = () => {
      throw new Error('EIO');
    };
    loggedErrors.length = 0;
    expect(refusalIn(await ended(await launch()))).toEqual(
      refusal(409, 'internal_error', { '.tag': 'internal_error' }),
    );
    expect(loggedErrors).toEqual([
      { event: 'a job failed', job: 'files/delete_batch', error: expect.stringContaining('EIO') },
    ]);
  });

  function post(name: string, argument: object): Promise<Answered> {
    return send(`${service.url}/2/${name}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(argument),
    });
  }
});

describe('unexpected errors of the storage', () => {
  const PATH = 'secret-name';

  test.each<[string, () => never]>([
    [
      'a broken disk',
      () => {
        throw new Error(`EIO: ${PATH}`);
      },
    ],
    [
      'a refusal that this function cannot meet',
      () => {
        throw new StorageError({ kind: 'revision', tag: 'invalid_revision' });
      },
    ],
  ])('%s answers 500 with the request id alone, under which the error is logged', async (_, fault) => {
    next = fault;
    loggedErrors.length = 0;
    const answered = await call('files/get_metadata');
    const requestId = answered.headers.get('x-dropbox-request-id') ?? '';
    expect([answered.status, answered.text]).toEqual([
      500,
      `The service failed. Its log has more under the request id ${requestId}.`,
    ]);
    expect(loggedErrors).toEqual([
      { event: 'a request failed', requestId, function: 'files/get_metadata', error: expect.any(String) },
    ]);
    expect(JSON.stringify(loggedErrors)).not.toContain(service.token);
  });

  const FILE: StoredFile = {
    kind: 'file',
    id: 'id:x',
    name: 'x',
    pathLower: '/x',
    pathDisplay: '/x',
    rev: '0123456789',
    sizeBytes: 10,
    contentHash: '0'.repeat(64),
    clientModifiedMs: 0,
    serverModifiedMs: 0,
  };

  /** Makes the storage answer `stat`, and then `read`. */
  function reading(read: () => AsyncGenerator<Uint8Array>): void {
    next = () => {
      next = read;
      return FILE;
    };
  }

  test("an error at a temporary link is logged without the link's secret", async () => {
    next = () => FILE;
    const { link } = (await call('files/get_temporary_link')).json as { link: string };
    const { pathname } = new URL(link);
    next = () => {
      throw new Error('EIO');
    };
    loggedErrors.length = 0;
    expect((await send(`${service.url}${pathname}`, {})).status).toBe(500);
    expect(loggedErrors).toMatchObject([{ event: 'a request failed', function: '/cd' }]);
    const secret = /[\w-]{43}/.exec(pathname)?.[0] ?? pathname;
    expect(JSON.stringify(loggedErrors)).not.toContain(secret);
  });

  test('a file removed between look-up and reading answers path/not_found', async () => {
    reading(async function* () {
      yield* [];
      throw new StorageError({ kind: 'lookup', tag: 'not_found' });
    });
    expect(refusalIn(await call('files/download'))).toMatchObject({ status: 409, summary: 'path/not_found' });
  });

  test('an error at the first byte of a download answers 500, and one later breaks the answer off', async () => {
    reading(async function* () {
      yield* [];
      throw new Error('a block does not match its hash');
    });
    expect((await call('files/download')).status).toBe(500);
    reading(async function* () {
      yield Buffer.from('five ');
      throw new Error('a block does not match its hash');
    });
    loggedErrors.length = 0;
    await expect(call('files/download')).rejects.toThrow();
    expect(loggedErrors).toMatchObject([{ error: 'Error: a block does not match its hash' }]);
  });

  test('a download with fewer bytes than its metadata says breaks off', async () => {
    reading(async function* () {
      yield Buffer.from('five ');
    });
    await expect(call('files/download')).rejects.toThrow();
  });
});
