import { SingleFlight } from '../util/single-flight.ts';
import { type AccessToken, counted, type Tokens } from './caller.ts';
import { type Account, accountRequest, readAccount } from './current-account.ts';
import { ApiError, isOutage } from './errors.ts';
import { CallFailure, failureOfAnswer, failureOfJunk, failureOfLoss } from './failure.ts';
import type { HttpAnswer } from './http.ts';
import { LostConnection } from './lost-connection.ts';
import type { TokenDeps } from './token.ts';

/** The account of a login; `unreadable` when its app lacks the scope `account_info.read`. */
export type LoginAccount = Account | 'unreadable';

/**
 * Issues tokens only after `admit` has accepted their account, so that no call is made before. When `admit` throws an
 * `ApiError`, no call is ever made.
 */
export class AdmittedTokens implements Tokens {
  readonly #checks = new SingleFlight<'account', void>();
  /** The account that was admitted. */
  account: LoginAccount | undefined;
  #refusal: ApiError | undefined;

  constructor(
    private readonly tokens: Tokens,
    private readonly deps: TokenDeps,
    private readonly admit: (account: LoginAccount) => Promise<void>,
  ) {}

  async current(signal: AbortSignal): Promise<AccessToken> {
    if (this.#refusal) throw this.#refusal;
    const token = await this.tokens.current(signal);
    if (this.account === undefined)
      await this.#checks.run('account', (stop) => this.#check(token.value, stop), signal);
    return token;
  }

  renew(token: string, signal: AbortSignal): Promise<boolean> {
    return this.tokens.renew(token, signal);
  }

  async #check(token: string, signal: AbortSignal): Promise<void> {
    const account = await accountOfToken(this.deps, token, signal);
    try {
      await this.admit(account);
    } catch (error) {
      if (error instanceof ApiError) this.#refusal = error;
      throw error;
    }
    this.account = account;
  }
}

/** Asks for the account of a token, outside the queue. Throws `CallFailure` without an answer. */
export async function accountOfToken(
  deps: TokenDeps,
  token: string,
  signal: AbortSignal,
): Promise<LoginAccount> {
  const { headers, route, ...request } = accountRequest();
  const authorized = { ...request, headers: { ...headers, authorization: `Bearer ${token}` } };
  try {
    const send = () => deps.send(authorized, signal);
    const answer = await counted(deps, route, signal, send);
    deps.meter.answered(answer.status);
    return accountIn(answer, route, deps);
  } catch (cause) {
    if (!(cause instanceof LostConnection)) throw cause;
    throw harmless(failureOfLoss(cause, route));
  }
}

function accountIn(answer: HttpAnswer, route: string, { clock }: TokenDeps): LoginAccount {
  if (answer.status !== 200) {
    const failure = failureOfAnswer(answer, route, clock.now());
    if (isOutage(failure.error)) throw harmless(failure);
    return 'unreadable';
  }
  try {
    return readAccount(answer);
  } catch (cause) {
    throw harmless(failureOfJunk(answer, route, cause));
  }
}

/** Returns the failure without an unknown outcome: the call that waits for the check has not been made. */
function harmless({ reason, error, retryAfterMs }: CallFailure): CallFailure {
  return new CallFailure(reason, error, { retryAfterMs });
}
