import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { type Answer, fileMetadata, json, ok, text } from '../../support/scripted-service.ts';
import { BODY, HASH } from '../../support/uploaded-file.ts';

const UPLOAD = 'files/upload';
const uploaded = ok(fileMetadata('/f', { content_hash: HASH }));

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

const upload = () => scripted.uploads.upload(at('/f'), BODY, { mode: { if: 'any' } });

describe('concurrent uploads', () => {
  /** Uploads that are not finished. */
  let left = 0;
  function many(count: number) {
    left = count;
    return Promise.all(Array.from({ length: count }, () => upload()));
  }

  /** Holds uploads until all that are allowed at once have arrived, and records how many there were at most. */
  function crowded(answerOf: (underWay: number) => Answer) {
    const seen = { most: 0 };
    const waiting: (() => unknown)[] = [];
    scripted.service.on(UPLOAD, (...asked) => {
      const answer = answerOf(waiting.length + 1);
      waiting.push(() => answer(...asked));
      seen.most = Math.max(seen.most, waiting.length);
      if (waiting.length < Math.min(left, scripted.uploads.uploadsAtOnce())) return;
      for (const give of waiting.splice(0)) give();
    });
    return seen;
  }
  const done: Answer = (...asked) => {
    left -= 1;
    return uploaded(...asked);
  };
  const refused = json(429, {
    error_summary: 'too_many_write_operations/',
    error: { reason: { '.tag': 'too_many_write_operations' }, retry_after: 1 },
  });

  test('uploads run in parallel, up to eight, while the service accepts that', async () => {
    const seen = crowded(() => done);
    await many(2);
    expect(seen.most).toBe(2);
    await many(40);
    expect(seen.most).toBe(8);
    expect(scripted.uploads.uploadsAtOnce()).toBe(8);
  });

  test('uploads run one by one after the service has refused one for contention, which is retried at once', async () => {
    const { service, clock, log } = scripted;
    const seen = crowded((underWay) => (underWay > 1 ? refused : done));
    // No time passes, so the refused upload did not wait for its Retry-After.
    await many(2);
    expect(service.callsOf(UPLOAD).length).toBeLessThanOrEqual(5);
    expect(scripted.uploads.uploadsAtOnce()).toBe(1);
    const before = service.callsOf(UPLOAD).length;
    seen.most = 0;
    await many(6);
    expect([seen.most, service.callsOf(UPLOAD).length - before]).toEqual([1, 6]);
    expect(log.lines).toEqual([]);
    await clock.advance(3_600_000);
    expect(scripted.uploads.uploadsAtOnce()).toBe(2);
  });

  test('uploads run one by one after a rate limit', async () => {
    scripted.service.on(UPLOAD, text(429, 'Too many requests.', { 'retry-after': '1' }), uploaded);
    await scripted.clock.during(upload());
    expect(scripted.uploads.uploadsAtOnce()).toBe(1);
  });
});
