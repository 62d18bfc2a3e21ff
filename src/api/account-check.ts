import { SingleFlight } from '../util/single-flight.ts';
import { counted } from './count.ts';
import { type Account, accountRequest, readAccount } from './current-account.ts';
import { ApiError, isOutage } from './errors.ts';
import { CallFailure, failureOfAnswer, failureOfJunk, failureOfLoss } from './failure.ts';
import { type HttpAnswer, LostConnection } from './http.ts';
import type { Tokens, TokenWorld } from './token.ts';

/** Whose a login is. `untold`: its app may not ask (scope `account_info.read`). */
export type Told = Account | 'untold';

/**
 * Tokens that are given out once `admit` has agreed to the account that they are of: no call goes out before. When it
 * throws an `ApiError`, none ever does.
 */
export class AdmittedTokens implements Tokens {
  readonly #questions = new SingleFlight<'whose', void>();
  #isAdmitted = false;
  #refusal: ApiError | undefined;

  constructor(
    private readonly tokens: Tokens,
    private readonly world: TokenWorld,
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
      const send = () => this.world.send(authorized, signal);
      const answer = await counted(this.world, route, signal, send);
      this.world.meter.answered(answer.status);
      return this.#read(answer, route);
    } catch (cause) {
      if (!(cause instanceof LostConnection)) throw cause;
      throw harmless(failureOfLoss(cause, route));
    }
  }

  #read(answer: HttpAnswer, route: string): Told {
    if (answer.status !== 200) {
      const failure = failureOfAnswer(answer, route, this.world.clock.now());
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

/** The question changes nothing: what is unknown is its answer, and not what became of the call that it was asked for. */
function harmless({ reason, error, retryAfterMs }: CallFailure): CallFailure {
  return new CallFailure(reason, error, { retryAfterMs });
}
