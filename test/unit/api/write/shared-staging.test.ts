import { expect, test } from 'vitest';
import type { TurnAnswer } from '../../../../src/api/shared-turns.ts';
import { sharedStaging } from '../../../../src/api/write/shared-staging.ts';
import type { ShortContent, UploadSession } from '../../../../src/api/write/upload-calls.ts';
import { answered, granted, LOST, scriptedTurns, WAITING } from '../../../support/scripted-turns.ts';

const content = (text: string): ShortContent => ({
  bytes: Buffer.from(text),
  contentHash: `hash of ${text}`,
});

const textsOf = (contents: readonly ShortContent[]) => contents.map(({ bytes }) => String(bytes));

/** What another gateway offers. */
const offered = (...texts: readonly string[]) =>
  texts.map((text) =>
    JSON.stringify({ base64: Buffer.from(text).toString('base64'), contentHash: `hash of ${text}` }),
  );

/** A gateway that has just met another one, and gets these answers next. It stages contents in sessions of their text. */
async function newGateway(...answers: TurnAnswer[]) {
  const { clock, shared, turns } = scriptedTurns(WAITING, granted(), ...answers);
  const staged: string[][] = [];
  const refused = new Set<string>();
  const stage = sharedStaging(turns, async (contents) => {
    staged.push(textsOf(contents));
    return textsOf(contents).map((text) => (refused.has(text) ? new Error(`no ${text}`) : { id: text }));
  });
  const meeting = {
    kind: 'commit' as const,
    entries: [],
    together: async () => ({ own: undefined, answers: [] }),
    answerAfter: () => '',
    read: () => undefined,
    lost: async () => undefined,
  };
  await clock.during(turns.run(meeting, new AbortController().signal));
  shared.asked.splice(0);
  shared.left.splice(0);
  const stageTexts = (...texts: readonly string[]): Promise<readonly (UploadSession | Error)[]> =>
    clock.during(stage(texts.map(content)));
  return { clock, shared, staged, refused, stageTexts };
}

test('a gateway that has met no other one stages alone, without a question', async () => {
  const { clock, shared, staged, stageTexts } = await newGateway();
  await clock.advance(5000);
  expect(await stageTexts('a')).toEqual([{ id: 'a' }]);
  expect([staged, shared.asked]).toEqual([[['a']], []]);
});

test('contents of several gateways are staged together, and each is told its own sessions', async () => {
  const { shared, staged, stageTexts } = await newGateway(WAITING, granted(offered('b', 'c'), offered('d')));
  expect(await stageTexts('a')).toEqual([{ id: 'a' }]);
  expect(staged).toEqual([['a', 'b', 'c', 'd']]);
  expect(shared.left[0]?.map(({ text }) => text)).toEqual(['["b","c"]', '["d"]']);
});

test('an offer is refused when the service refuses one of its contents, and the other offers keep their sessions', async () => {
  const gateway = await newGateway(WAITING, granted(offered('b', 'c'), offered('d')));
  gateway.refused.add('c');
  expect(await gateway.stageTexts('a')).toEqual([{ id: 'a' }]);
  expect(gateway.shared.left[0]?.map(({ text }) => text)).toEqual(['refused', '["d"]']);
});

test('contents that another gateway has staged are not sent again', async () => {
  const { shared, staged, stageTexts } = await newGateway(WAITING, answered('["x","y"]'));
  expect(await stageTexts('a', 'b')).toEqual([{ id: 'x' }, { id: 'y' }]);
  expect(staged).toEqual([]);
  expect(shared.asked[0]?.entries).toEqual(offered('a', 'b'));
});

test.each([
  ['was refused', answered('refused')],
  ['was killed', LOST],
])('a gateway stages its contents itself when the one that staged for it %s', async (_, end) => {
  const { staged, stageTexts } = await newGateway(WAITING, end);
  expect(await stageTexts('a', 'b')).toEqual([{ id: 'a' }, { id: 'b' }]);
  expect(staged).toEqual([['a', 'b']]);
});

test('contents of more than 512 KiB do not go through the memory of Redis', async () => {
  const { shared, staged, stageTexts } = await newGateway();
  const text = 'x'.repeat(300 * 1024);
  await stageTexts(text, text);
  expect([staged.length, shared.asked]).toEqual([1, []]);
});
