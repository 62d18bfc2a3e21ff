import type { Answer } from '../../http/exchange.ts';
import { ClientGone, type Exchange } from '../../http/exchange.ts';
import { text } from '../api/answers.ts';
import { functionName } from '../api/dispatch.ts';
import { tooManyRequests } from '../api/failures.ts';
import type { ServiceDeps } from '../deps.ts';
import { ROUTES } from '../routes/table.ts';
import { contentWithFaults } from './content.ts';
import type { Faults } from './faults.ts';

/** The kind of a call, by which faults are chosen. */
type CallClass = 'metadata' | 'read' | 'write';

/** Answers of a failing service, with and without a body. */
const ERRORS: readonly Answer[] = [
  text(500, 'Internal Server Error'),
  { status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>Bad Gateway</h1>' },
  { status: 503, headers: {}, body: '' },
];

/** Runs a call with faults: delayed, refused, failed, or with a damaged or lost answer. */
export async function callWithFaults(
  faults: Faults,
  exchange: Exchange,
  deps: ServiceDeps,
  run: () => Promise<Answer>,
): Promise<Answer> {
  const kind = classOf(exchange.path);
  const latencyMs = faults.value(`latency-${kind}-ms`);
  if (latencyMs > 0) await faults.clock.sleep(latencyMs, exchange.signal);
  const overRate = await rateAnswer(faults, exchange, deps);
  if (overRate) return overRate;
  const error = faults.happensInBursts(`error-${kind}-share`) && ERRORS[faults.random(ERRORS.length)];
  if (error) return error;
  const answer = await run();
  if (answer.status >= 300) return answer;
  // The client gets no answer: the connection is closed.
  if (kind === 'write' && faults.happens('lost-answer-share'))
    throw new ClientGone('the answer is lost (injected fault)');
  return kind === 'read' ? contentWithFaults(faults, answer, exchange.signal) : answer;
}

function classOf(path: string): CallClass {
  const route = ROUTES.get(functionName(path));
  if (route?.style === 'download') return 'read';
  const isWrite = route?.scope?.endsWith('.write') || route?.scope === 'files.permanent_delete';
  return isWrite ? 'write' : 'metadata';
}

/**
 * Returns the refusal of a call above the rate limit; throws one that is JSON. Calls without a token are not counted.
 */
async function rateAnswer(
  faults: Faults,
  { request }: Exchange,
  { tokens, clock }: ServiceDeps,
): Promise<Answer | undefined> {
  if (!faults.isRateLimited) return undefined;
  const token = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1];
  const bearer = token === undefined ? undefined : await tokens.bearer(clock.now(), token);
  const seconds = bearer ? faults.secondsOverRate(`${bearer.appKey} ${bearer.account.id}`) : 0;
  if (seconds === 0) return undefined;
  if (!faults.happens('rate-text-share')) throw tooManyRequests(seconds);
  return text(429, 'Too many requests.', { 'retry-after': String(seconds) });
}
