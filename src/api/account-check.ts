import { SingleFlight } from '../util/single-flight.ts';
import { counted } from './count.ts';
import { type Account, accountRequest, readAccount } from './current-account.ts';
import { ApiError, isOutage } from './errors.ts';
import { CallFailure, failureOfAnswer, failureOfJunk, failureOfLoss } from './failure.ts';
import { type HttpAnswer, LostConnection } from './http.ts';
import type { TokenDeps, Tokens } from './token.ts';

/** The account of a login; `untold` when its app may not ask (scope `account_info.read`). */
export type Told = Account | 'untold';

/**
 * Tokens that are given out only after `admit` has accepted their account, so that no call is made before. When `admit`
 * throws an `ApiError`, no call is ever made.
 */
export class AdmittedTokens implements Tokens {
  readonly #questions = new SingleFlight<'whose', void>();
  #isAdmitted = false;
  #refusal: ApiError | undefined;

  constructor(
    private readonly tokens: Tokens,
    private readonly deps: TokenDeps,
    private readonly admit: (told: Told) => Promise<void>,
  ) {}

  async current(signal: AbortSignal): Promise<string> {
    if (this.#refusal) throw this.#refusal;
    const token = await this.tokens.current(signal);
    if (!this.#isAdmitted) await this.#questions.run('whose', (stop) => this.#ask(token, stop), signal);
    return token;
  }

  renew(token: string, signal: AbortSignal): Promise<boolean> {
    return this.tokens.renew(token, signal);
  }

  async #ask(token: string, signal: AbortSignal): Promise<void> {
    const told = await this.#whose(token, signal);
    try {
      await this.admit(told);
    } catch (error) {
      if (error instanceof ApiError) this.#refusal = error;
      throw error;
    }
    this.#isAdmitted = true;
  }

  async #whose(token: string, signal: AbortSignal): Promise<Told> {
    const { headers, route, ...request } = accountRequest();
    const authorized = { ...request, headers: { ...headers, authorization: `Bearer ${token}` } };
    try {
      const send = () => this.deps.send(authorized, signal);
      const answer = await counted(this.deps, route, signal, send);
      this.deps.meter.answered(answer.status);
      return this.#read(answer, route);
    } catch (cause) {
      if (!(cause instanceof LostConnection)) throw cause;
      throw harmless(failureOfLoss(cause, route));
    }
  }

  #read(answer: HttpAnswer, route: string): Told {
    if (answer.status !== 200) {
      const failure = failureOfAnswer(answer, route, this.deps.clock.now());
      if (isOutage(failure.error)) throw harmless(failure);
      return 'untold';
    }
    try {
      return readAccount(answer);
    } catch (cause) {
      throw harmless(failureOfJunk(answer, route, cause));
    }
  }
}

/** Marks a failed question as harmless: the call that it was asked for has not been made. */
function harmless({ reason, error, retryAfterMs }: CallFailure): CallFailure {
  return new CallFailure(reason, error, { retryAfterMs });
}
