import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ShortContent } from '../../../../src/api/write/upload-calls.ts';
import { contentHashOf } from '../../../../src/util/content-hash.ts';
import { openScripted, type Scripted } from '../../../support/scripted-remote.ts';
import { type Answer, lose, ok, text } from '../../../support/scripted-service.ts';

const START = 'files/upload_session/start';
const START_BATCH = 'files/upload_session/start_batch';
const APPEND_BATCH = 'files/upload_session/append_batch';

let scripted: Scripted;
let sessionCount: number;
beforeEach(async () => {
  sessionCount = 0;
  scripted = await openScripted();
  scripted.service.on(START_BATCH, startBatch);
});
afterEach(() => scripted.close());

const startBatch: Answer = (response, call, request) => {
  const { num_sessions } = call.arg as { num_sessions: number };
  const session_ids = Array.from({ length: num_sessions }, () => {
    sessionCount += 1;
    return `pid_upload_session:${String(sessionCount).padStart(22, '0')}`;
  });
  return ok({ session_ids })(response, call, request);
};

interface Appended {
  readonly cursor: { readonly session_id: string; readonly offset: number };
  readonly length: number;
  readonly close: boolean;
}

const entriesOf = (arg: unknown) => (arg as { entries: Appended[] }).entries;
const success = { '.tag': 'success' };
const failed = (tag: string) => ({ '.tag': 'failure', failure: { '.tag': tag } });

/** Answers each requested entry by its index. */
const entries =
  (outcomeOf: (index: number) => unknown): Answer =>
  (response, call, request) =>
    ok({ entries: entriesOf(call.arg).map((_, index) => outcomeOf(index)) })(response, call, request);

const contentOf = (text: string): ShortContent => {
  const bytes = Buffer.from(text);
  return { bytes, contentHash: contentHashOf(bytes) };
};
const contents = ['one', '', 'three'].map(contentOf);
const stage = (some: readonly ShortContent[] = contents) => scripted.uploads.stageContents(some);
const appendCalls = () => scripted.service.callsOf(APPEND_BATCH);

test('a single content is staged with one call that starts and closes a session', async () => {
  scripted.service.on(START, ok({ session_id: 's' }));
  expect(await stage([contentOf('one')])).toEqual([{ id: 's' }]);
  expect(scripted.service.routes).toEqual([START]);
  expect(scripted.service.calls[0]).toMatchObject({
    arg: { close: true, content_hash: contentHashOf(Buffer.from('one')) },
    body: Buffer.from('one'),
  });
});

describe('several contents', () => {
  test('several contents are staged in one body, into sessions started by one call', async () => {
    scripted.service.on(
      APPEND_BATCH,
      entries(() => success),
    );
    const sessions = await stage();
    expect(scripted.service.routes).toEqual([START_BATCH, APPEND_BATCH]);
    const [append] = appendCalls();
    expect(append?.body.toString()).toBe('onethree');
    expect(append?.arg).toEqual({
      entries: [3, 0, 5].map((length, index) => ({
        cursor: { session_id: (sessions[index] as { id: string }).id, offset: 0 },
        length,
        close: true,
      })),
      content_hash: contentHashOf(Buffer.from('onethree')),
    });
  });

  test('staging uses each started session once, and keeps unused ones for later calls', async () => {
    scripted.service.on(
      APPEND_BATCH,
      entries(() => success),
    );
    const staged = [];
    for (let round = 0; round < 5; round += 1) staged.push(...(await stage()));
    expect(scripted.service.callsOf(START_BATCH)).toHaveLength(1);
    expect(new Set(staged.map((session) => 'id' in session && session.id)).size).toBe(15);
  });

  test('staging uses no session that was started an hour before', async () => {
    scripted.service.on(
      APPEND_BATCH,
      entries(() => success),
    );
    const before = await stage();
    await scripted.clock.advance(3_600_000);
    const [first] = await stage();
    expect(scripted.service.callsOf(START_BATCH)).toHaveLength(2);
    expect(Number((first as { id: string }).id.split(':')[1])).toBeGreaterThan(before.length * 9);
  });

  test('staging starts more sessions when the service returned fewer than requested', async () => {
    scripted.service.on(
      APPEND_BATCH,
      entries(() => success),
    );
    scripted.service.on(START_BATCH, ok({ session_ids: ['only'] }), startBatch);
    expect(await stage()).toHaveLength(3);
    expect(scripted.service.callsOf(START_BATCH)).toHaveLength(2);
  });

  test('staging is split where its argument would be too long for a header', async () => {
    scripted.service.on(
      APPEND_BATCH,
      entries(() => success),
    );
    const many = Array.from({ length: 130 }, (_, index) => contentOf(`${index}`));
    expect(await stage(many)).toHaveLength(130);
    expect(appendCalls().length).toBeGreaterThan(1);
    for (const { headers } of appendCalls())
      expect(String(headers['dropbox-api-arg']).length).toBeLessThan(8000);
    expect(appendCalls().flatMap(({ arg }) => entriesOf(arg))).toHaveLength(130);
  });

  test('each staged content has its own outcome', async () => {
    scripted.service.on(
      APPEND_BATCH,
      entries((index) => (index === 1 ? failed('not_found') : success)),
    );
    expect(await stage()).toMatchObject(
      [{ id: /1$/ }, { failure: 'session-gone' }, { id: /3$/ }].map((outcome) =>
        'id' in outcome ? { id: expect.stringMatching(outcome.id) } : outcome,
      ),
    );
  });

  test('contents whose staging answer was lost are sent again, and a closed session then counts as staged', async () => {
    scripted.service.on(
      APPEND_BATCH,
      lose,
      entries((index) => (index === 1 ? success : failed('closed'))),
    );
    const sessions = await stage();
    expect(sessions.every((session) => 'id' in session)).toBe(true);
    expect(appendCalls()).toHaveLength(2);
  });

  test('a closed session without a lost answer fails with session-gone', async () => {
    scripted.service.on(
      APPEND_BATCH,
      entries((index) => (index === 1 ? failed('closed') : success)),
    );
    expect((await stage())[1]).toMatchObject({ failure: 'session-gone' });
  });

  test('staging fails for all contents when the service refuses the call', async () => {
    scripted.service.on(APPEND_BATCH, text(400, 'Error in call to API function "x": Unknown API function'));
    await expect(stage()).rejects.toMatchObject({ failure: 'bad-request' });
  });
});
