import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { at, openScripted, type Scripted } from '../../../support/scripted-remote.ts';
import { type Answer, fileMetadata, json, ok, text } from '../../../support/scripted-service.ts';
import { BODY, HASH } from '../../../support/uploaded-file.ts';

const UPLOAD = 'files/upload';
const uploaded = ok(fileMetadata('/f', { content_hash: HASH }));

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

const upload = () => scripted.uploads.upload(at('/f'), BODY, { mode: { if: 'any' } });

describe('several uploads at once', () => {
  /** Uploads that were not told yet to be done. */
  let left = 0;
  function many(count: number) {
    left = count;
    return Promise.all(Array.from({ length: count }, () => upload()));
  }

  /** Answers all that are let out at once when the last of them has come; how many they were at most. */
  function crowded(answerOf: (underWay: number) => Answer) {
    const seen = { most: 0 };
    const held: (() => unknown)[] = [];
    scripted.service.on(UPLOAD, (...asked) => {
      const answer = answerOf(held.length + 1);
      held.push(() => answer(...asked));
      seen.most = Math.max(seen.most, held.length);
      if (held.length < Math.min(left, scripted.uploads.uploadsAtOnce())) return;
      for (const give of held.splice(0)) give();
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

  test('go side by side, more and more, where the service takes that', async () => {
    const seen = crowded(() => done);
    await many(2);
    expect(seen.most).toBe(2);
    await many(40);
    expect(seen.most).toBe(8);
    expect(scripted.uploads.uploadsAtOnce()).toBe(8);
  });

  test('go one by one once the service has refused one, which is tried again at once', async () => {
    const { service, clock, log } = scripted;
    const seen = crowded((underWay) => (underWay > 1 ? refused : done));
    // No time passes: nobody waits the second that the service asks for.
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

  test('go one by one once the service limits calls', async () => {
    scripted.service.on(UPLOAD, text(429, 'Too many requests.', { 'retry-after': '1' }), uploaded);
    await scripted.clock.during(upload());
    expect(scripted.uploads.uploadsAtOnce()).toBe(1);
  });
});
