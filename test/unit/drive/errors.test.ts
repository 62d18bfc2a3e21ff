import { describe, expect, test } from 'vitest';
import { ApiError, type ApiFailure, isApiFailure } from '../../../src/api/errors.ts';
import { type Fault, FileError, fileErrorOf } from '../../../src/drive/errors.ts';

/** The fault for each API failure; a new failure does not compile until it has a row. */
const EXPECTED: Record<ApiFailure, Fault> = {
  'not-found': 'not-found',
  'not-file': 'is-a-folder',
  'not-folder': 'not-a-folder',
  'conflict-file': 'exists',
  'conflict-folder': 'exists',
  'conflict-ancestor': 'parent-missing',
  'malformed-path': 'bad-name',
  'disallowed-name': 'bad-name',
  'no-permission': 'forbidden',
  restricted: 'forbidden',
  locked: 'forbidden',
  'insufficient-space': 'no-space',
  'too-large': 'too-large',
  'too-many-files': 'too-many',
  'into-itself': 'into-itself',
  incomplete: 'incomplete',
  'hash-mismatch': 'broken',
  'incorrect-offset': 'broken',
  'session-gone': 'broken',
  reset: 'busy',
  range: 'broken',
  'link-exists': 'exists',
  'link-settings': 'unsupported',
  'link-gone': 'not-found',
  'revision-gone': 'not-found',
  'no-thumbnail': 'unsupported',
  'not-allowed': 'not-entitled',
  unauthorized: 'unauthorized',
  'wrong-namespace': 'unauthorized',
  'rate-limited': 'busy',
  unavailable: 'busy',
  offline: 'offline',
  'bad-request': 'broken',
  foreign: 'intercepted',
};

describe('fileErrorOf', () => {
  test.each(Object.entries(EXPECTED) as [ApiFailure, Fault][])(
    'the API failure %s becomes the fault %s, and its message leaks no internals',
    (failure, fault) => {
      const cause = new ApiError(failure, 'secret internals');
      const error = fileErrorOf(cause, '/Docs/a.txt');
      expect(error).toBeInstanceOf(FileError);
      expect(error).toMatchObject({
        fault,
        cause,
        message: expect.stringMatching(/\/Docs\/a\.txt|storage service/),
      });
      expect(String(error)).not.toContain('secret');
    },
  );

  test('a fault keeps the retry delay of its API failure, and unsupported link settings name the API error', () => {
    expect(fileErrorOf(new ApiError('rate-limited', '', { retryAfterMs: 3_000 }), '/a')).toMatchObject({
      fault: 'busy',
      details: { retryAfterMs: 3_000 },
    });
    const refused = new ApiError('link-settings', '', { summary: 'settings_error/not_authorized' });
    expect(fileErrorOf(refused, '/a')).toMatchObject({
      fault: 'unsupported',
      message: expect.stringContaining('settings_error/not_authorized'),
    });
  });

  test('fileErrorOf returns an error that is not an ApiError unchanged', () => {
    const other = new Error('other');
    expect(fileErrorOf(other, '/a')).toBe(other);
    expect(isApiFailure(other, 'not-found')).toBe(false);
    expect(isApiFailure(new ApiError('offline', ''), 'not-found', 'offline')).toBe(true);
  });
});
