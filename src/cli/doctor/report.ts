import { ApiError } from '../../api/errors.ts';

type Level = 'ok' | 'warn' | 'FAIL';

/** What a check was about takes so many columns, that what it found stands in one line below the other. */
const ABOUT_WIDTH = 18;

/** What the checks found: a line each, printed as it comes. */
export class Report {
  readonly #counts: Record<Level, number> = { ok: 0, warn: 0, FAIL: 0 };

  constructor(private readonly print: (line: string) => void) {}

  get failures(): number {
    return this.#counts.FAIL;
  }

  ok(about: string, found: string): void {
    this.#add('ok', about, found);
  }

  /** It works, but not all of it, or not for long. */
  warn(about: string, found: string): void {
    this.#add('warn', about, found);
  }

  fail(about: string, found: string): void {
    this.#add('FAIL', about, found);
  }

  end(): void {
    const { ok, warn, FAIL } = this.#counts;
    this.print(`${ok} ok, ${warn} to look at, ${FAIL} to mend`);
  }

  #add(level: Level, about: string, found: string): void {
    this.#counts[level]++;
    // One line a check, whatever a service put into its words.
    const line = `${level.padEnd(5)} ${about.padEnd(ABOUT_WIDTH)} ${found}`;
    this.print(line.replace(/\p{Cc}+/gu, ' '));
  }
}

export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

/** What could be wrong with a call, and how to mend it. */
export interface Advice {
  /** That the call needs. */
  readonly scope: string;
  /** What davgate cannot do without it; a warning then, and else a failure. */
  readonly without?: string;
  /** What to do about a failure that means something special here. */
  readonly mend?: (error: ApiError) => string | undefined;
}

/** The result of a call of the service, or `undefined` once what went wrong is reported. */
export async function attempt<T>(
  report: Report,
  about: string,
  advice: Advice,
  call: () => Promise<T>,
): Promise<{ readonly result: T } | undefined> {
  try {
    return { result: await call() };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const mend = advice.mend?.(error);
    const found = `${error.message}${mend === undefined ? mendOf(error, advice) : `; ${mend}`}`;
    if (error.failure === 'not-allowed' && advice.without !== undefined)
      report.warn(about, `${found}; until then: ${advice.without}`);
    else report.fail(about, found);
    return undefined;
  }
}

/** OpenSSL's words for an answer that is no TLS: most likely plain HTTP. */
const WITHOUT_TLS = /wrong version number|packet length too long|unknown protocol/i;

function mendOf({ failure, message }: ApiError, { scope }: Advice): string {
  switch (failure) {
    case 'not-allowed':
      return `; choose the scope ${scope} for the app in the service's developer console, then log in again`;
    case 'unauthorized':
      return '; get a new token, or log in again (davgate login --remove, then davgate login)';
    case 'offline':
      if (WITHOUT_TLS.test(message))
        return '; the port answers without TLS: write http:// in the address, or the port of its https';
      return /cert|tls|ssl/i.test(message)
        ? '; its certificate is not trusted here: check the address, and this machine’s clock and certificates'
        : '; check the address, this machine’s network and its proxy';
    case 'foreign':
      return '; check the address (--api-url), this machine’s network and its proxy';
    case 'rate-limited':
      return '; too many calls for this app and account: wait, and look for other programs that use it';
    case 'insufficient-space':
      return '; free some space in the account';
    default:
      return '';
  }
}
