import { contentHashOf } from '../../src/util/content-hash.ts';
import { fileMetadata, ok, tagged } from './scripted-service.ts';

/** The body that upload tests send to `/f`. */
export const BODY = new TextEncoder().encode('abc');
export const HASH = contentHashOf(BODY);

export const STAT = 'files/get_metadata';

export const LONG_AGO = '2020-01-01T00:00:00Z';

/** Returns a server time later than any call of the test, also on a busy machine. */
export const afterTheCall = () => new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+Z$/, 'Z');

/** Returns the answer of get_metadata for the uploaded file, with `more` changed. */
export const stored = (more: Record<string, unknown> = {}) =>
  ok(tagged('file', fileMetadata('/f', { content_hash: HASH, server_modified: afterTheCall(), ...more })));
