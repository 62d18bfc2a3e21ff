import { setImmediate } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { SharedBudget } from '../../../src/api/shared-budget.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { fileMetadata, json, lose, notFound, ok } from '../../support/scripted-service.ts';
import { granted, ScriptedTurns, WAITING } from '../../support/scripted-turns.ts';
import { BODY, HASH, STAT } from '../../support/uploaded-file.ts';

// Commits of a gateway that shares its account with others.

const UPLOAD = 'files/upload';
const uploaded = ok(fileMetadata('/f', { content_hash: HASH }));
const contention = json(429, {
  error_summary: 'too_many_write_operations/',
  error: { reason: { '.tag': 'too_many_write_operations' }, retry_after: 1 },
});

/** A budget that limits nothing, of a service that refuses parallel commits. */
const budget: SharedBudget = {
  take: async (calls) => ({ calls, pausedMs: 0, parallelCommits: 'refused' }),
  pause: async () => {},
  resume: async () => {},
  chooseTrier: async () => false,
  learned: async () => {},
};

let scripted: Scripted;
afterEach(() => scripted.close());

const upload = () => scripted.uploads.upload(at('/f'), BODY, { mode: { if: 'absent' }, yields: true });

test('a commit that met contention with a client outside the turns is retried when the service says, not at once', async () => {
  // The turns are away.
  scripted = await openScripted({ shared: { budget, turns: new ScriptedTurns([]) } });
  const { service, clock } = scripted;
  service.on(UPLOAD, contention, uploaded);
  const uploading = upload();
  await Promise.race([uploading, clock.untilSleeping(2)]);
  await clock.advance(999);
  expect(service.callsOf(UPLOAD)).toHaveLength(1);
  await clock.advance(1);
  expect(await uploading).toMatchObject({ path: '/f' });
});

test('a commit whose answer was lost waits for its turn instead of yielding, because only it looks for its file', async () => {
  const turns = new ScriptedTurns([granted(), WAITING, granted()]);
  scripted = await openScripted({ shared: { budget, turns } });
  const { service, clock } = scripted;
  service.on(UPLOAD, lose, uploaded).on(STAT, notFound);
  const uploading = upload();
  const ended = uploading.then(
    () => 'stored',
    (error: unknown) => String(error),
  );
  while (turns.asked.length < 2) await setImmediate();
  await Promise.race([ended, clock.untilSleeping()]);
  await clock.advance(1_000);
  expect(await ended).toBe('stored');
  expect(service.callsOf(UPLOAD)).toHaveLength(2);
});
