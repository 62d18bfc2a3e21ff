import type { HttpAnswer } from './http.ts';
import { LostConnection } from './lost-connection.ts';
import { type CallRequest, parsed } from './request.ts';
import type { Offer } from './shared-turns.ts';
import type { Turns } from './turns.ts';

/**
 * Sends a commit when its turn has come, together with the batches of other gateways, or returns the answer of the gateway
 * that has sent it. No commit is made twice: those of a batch use up their upload sessions, and an offer without an answer
 * counts as a call whose answer was lost. Throws `TurnTaken` for a call that yields.
 */
export function sendInTurn(
  turns: Turns,
  request: CallRequest,
  send: (request: CallRequest) => Promise<HttpAnswer>,
  signal: AbortSignal,
): Promise<HttpAnswer> {
  const { entries = [], yields = false } = request;
  const work = {
    kind: 'commit' as const,
    entries,
    waits: !yields,
    async together(offers: readonly Offer[]) {
      if (offers.length === 0) return { own: await send(request), answers: [] };
      const answer = await send(merged(request, offers));
      return { own: partOf(answer, 0, entries.length), answers: answersTo(offers, answer, entries.length) };
    },
    answerAfter: (error: unknown) => textOf({ is: isUnsent(error) ? 'unsent' : 'lost' }),
    read(text: string) {
      const told = parsed<ToldAnswer>(text);
      if (told.is === 'lost') throw lost();
      return told.is === 'unsent' ? undefined : httpAnswerOf(told);
    },
    async lost(): Promise<HttpAnswer> {
      throw lost();
    },
  };
  return turns.run(work, signal);
}

/** What a gateway tells another one about its batch. */
type ToldAnswer =
  | ({ readonly is: 'answer' } & PlainAnswer)
  /** It may have been committed. */
  | { readonly is: 'lost' }
  /** It has not been committed, and must be offered again. */
  | { readonly is: 'unsent' };

interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

/** The headers that are read of the answer to a commit. */
const HEADERS = ['date', 'retry-after', 'content-type', 'x-dropbox-request-id'];

/** The status of a refused token, which is not that of the gateway that made the offer. */
const UNAUTHORIZED = 401;

function merged(request: CallRequest, offers: readonly Offer[]): CallRequest {
  const entries = [...(request.entries ?? []), ...offers.flatMap((offer) => offer.entries)];
  return { ...request, body: `{"entries":[${entries.join(',')}]}` };
}

/** Returns for each offer its part of the answer. The first `own` entries of the answer are this gateway's. */
function answersTo(offers: readonly Offer[], answer: HttpAnswer, own: number): readonly string[] {
  if (answer.status === UNAUTHORIZED) return offers.map(() => textOf({ is: 'unsent' }));
  const named = HEADERS.flatMap((name) => {
    const value = answer.header(name);
    return value === undefined ? [] : [[name, value] as const];
  });
  const headers = Object.fromEntries(named);
  let start = own;
  return offers.map(({ entries }) => {
    const { status, text } = partOf(answer, start, entries.length);
    start += entries.length;
    return textOf({ is: 'answer', status, text, headers });
  });
}

/** Returns the answer to `count` entries of a batch. An answer that makes no sense stays as it is. */
function partOf(answer: HttpAnswer, start: number, count: number): HttpAnswer {
  const { status, text } = answer;
  const header = (name: string) => answer.header(name);
  if (status !== 200) return { status, text, header };
  try {
    const entries = parsed<{ readonly entries: readonly unknown[] }>(text).entries.slice(
      start,
      start + count,
    );
    return { status, text: JSON.stringify({ entries }), header };
  } catch {
    return { status, text, header };
  }
}

function textOf(told: ToldAnswer): string {
  return JSON.stringify(told);
}

function httpAnswerOf({ status, headers, text }: PlainAnswer): HttpAnswer {
  return { status, text, header: (name) => headers[name] };
}

function isUnsent(error: unknown): boolean {
  return error instanceof LostConnection && !error.mayHaveArrived;
}

function lost(): LostConnection {
  return new LostConnection(
    'the gateway that was to send this commit has not answered',
    true,
    true,
    undefined,
  );
}
