import { expect, test } from 'vitest';
import { sendInTurn } from '../../../src/api/commit-turns.ts';
import type { HttpAnswer } from '../../../src/api/http.ts';
import { LostConnection } from '../../../src/api/lost-connection.ts';
import { type CallRequest, rpcRequest } from '../../../src/api/request.ts';
import { answered, granted, LOST, scriptedTurns, WAITING } from '../../support/scripted-turns.ts';

/** Never aborted. */
const { signal } = new AbortController();

const OWN: CallRequest = {
  ...rpcRequest('files/upload_session/finish_batch_v2', { entries: [1] }),
  entries: ['1'],
};

function answerOf(status: number, text: string, headers: Readonly<Record<string, string>> = {}): HttpAnswer {
  return { status, text, header: (name) => headers[name] };
}

/** The answers that the offers of a turn were told, as JSON. */
function told(shared: ReturnType<typeof scriptedTurns>['shared']) {
  return shared.left[0]?.map(({ text }) => JSON.parse(text));
}

/** Sends `OWN` with a turn whose offers are `2` and `3, 4`; `send` answers. */
function sendWithOffers(send: (request: CallRequest) => Promise<HttpAnswer>) {
  const { clock, shared, turns } = scriptedTurns(granted(['2'], ['3', '4']));
  return { shared, sent: clock.during(sendInTurn(turns, OWN, send, signal)) };
}

test('the batches of several gateways are one call, and each gets the part of the answer that is its own', async () => {
  const bodies: unknown[] = [];
  const { shared, sent } = sendWithOffers(async ({ body }) => {
    bodies.push(JSON.parse(String(body)));
    return answerOf(200, '{"entries":["a","b","c","d"]}', { date: 'today', 'set-cookie': 'secret' });
  });
  expect((await sent).text).toBe('{"entries":["a"]}');
  expect(bodies).toEqual([{ entries: [1, 2, 3, 4] }]);
  const common = { is: 'answer', status: 200, headers: { date: 'today' } };
  expect(told(shared)).toEqual([
    { ...common, text: '{"entries":["b"]}' },
    { ...common, text: '{"entries":["c","d"]}' },
  ]);
});

test('a refusal of a call is the refusal of every batch in it, with the time to wait', async () => {
  const { shared, sent } = sendWithOffers(async () => answerOf(429, 'too many', { 'retry-after': '3' }));
  expect((await sent).status).toBe(429);
  const refusal = { is: 'answer', status: 429, text: 'too many', headers: { 'retry-after': '3' } };
  expect(told(shared)).toEqual([refusal, refusal]);
});

test('a refused token concerns the gateway that has sent it, and the batches of others are unsent', async () => {
  const { shared, sent } = sendWithOffers(async () => answerOf(401, 'expired'));
  expect((await sent).status).toBe(401);
  expect(told(shared)).toEqual([{ is: 'unsent' }, { is: 'unsent' }]);
});

test.each([
  ['was never opened', 'unsent', false],
  ['was lost after the call may have arrived', 'lost', true],
])('when the connection %s, the batches of others are %s', async (_, is, mayHaveArrived) => {
  const { shared, sent } = sendWithOffers(() =>
    Promise.reject(new LostConnection('gone', mayHaveArrived, true, undefined)),
  );
  await expect(sent).rejects.toThrow('gone');
  expect(told(shared)).toEqual([{ is }, { is }]);
});

test('a batch that another gateway could not send is sent in a later turn', async () => {
  const { clock, turns } = scriptedTurns(WAITING, answered('{"is":"unsent"}'), granted());
  const sent: CallRequest[] = [];
  const send = async (request: CallRequest) => {
    sent.push(request);
    return answerOf(200, '{"entries":["a"]}');
  };
  expect((await clock.during(sendInTurn(turns, OWN, send, signal))).text).toBe('{"entries":["a"]}');
  expect(sent).toEqual([OWN]);
});

test('the answer that another gateway has got is that of the batch, with its headers', async () => {
  const text = JSON.stringify({ is: 'answer', status: 200, text: 'x', headers: { date: 'today' } });
  const { clock, turns } = scriptedTurns(WAITING, answered(text));
  const answer = await clock.during(sendInTurn(turns, OWN, unexpected, signal));
  expect([answer.status, answer.text, answer.header('date')]).toEqual([200, 'x', 'today']);
});

test.each([
  ['whose answer another gateway has lost', answered('{"is":"lost"}')],
  ['whose gateway was killed', LOST],
])('a batch %s may have been committed, and is not sent again by its turn', async (_, end) => {
  const { clock, turns } = scriptedTurns(WAITING, end);
  const sent = clock.during(sendInTurn(turns, OWN, unexpected, signal));
  await expect(sent).rejects.toMatchObject({ name: 'LostConnection', mayHaveArrived: true, passing: true });
});

async function unexpected(): Promise<HttpAnswer> {
  throw new Error('the batch was sent');
}
