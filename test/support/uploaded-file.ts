import { contentHashOf } from '../../src/util/content-hash.ts';
import { fileMetadata, ok, tagged } from './scripted-service.ts';

/** What the tests of uploads send, to `/f`. */
export const BODY = new TextEncoder().encode('abc');
export const HASH = contentHashOf(BODY);

export const STAT = 'files/get_metadata';

export const LONG_AGO = '2020-01-01T00:00:00Z';

/** The service's clock is the machine's: newer than any call of the test, however long that stands still. */
export const afterTheCall = () => new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');

/** `STAT` of the file as our upload has just made it, but for `more`. */
export const stored = (more: Record<string, unknown> = {}) =>
  ok(tagged('file', fileMetadata('/f', { content_hash: HASH, server_modified: afterTheCall(), ...more })));
