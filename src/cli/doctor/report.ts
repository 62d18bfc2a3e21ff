import { ApiError } from '../../api/errors.ts';

type Level = 'ok' | 'warn' | 'FAIL';

/** Width of the column with a check's subject. */
const ABOUT_WIDTH = 18;

/** The result of one check. */
interface Result {
  readonly level: 'ok' | 'warn' | 'fail';
  readonly check: string;
  /** The drive that was checked; absent if there is only one, and for checks of the machine. */
  readonly drive?: string;
  readonly message: string;
}

/** Prints a line for each result, and keeps them all. */
export class Report {
  readonly results: Result[] = [];
  #drive: string | undefined;
  readonly #counts: Record<Level, number> = { ok: 0, warn: 0, FAIL: 0 };

  constructor(private readonly print: (line: string) => void) {}

  get failures(): number {
    return this.#counts.FAIL;
  }

  /** The following results are those of a drive. */
  startDrive(name: string): void {
    this.#drive = name;
    this.print(`drive ${name}`);
  }

  ok(about: string, found: string): void {
    this.#add('ok', about, found);
  }

  /** Reports something that works, but not completely or not for long. */
  warn(about: string, found: string): void {
    this.#add('warn', about, found);
  }

  fail(about: string, found: string): void {
    this.#add('FAIL', about, found);
  }

  end(): void {
    const { ok, warn, FAIL } = this.#counts;
    this.print(`${ok} ok, ${warn} warnings, ${FAIL} failures`);
  }

  #add(level: Level, about: string, found: string): void {
    this.#counts[level]++;
    // One line per check, whatever characters the service's message contains.
    const message = found.replace(/\p{Cc}+/gu, ' ');
    const drive = this.#drive !== undefined && { drive: this.#drive };
    const result: Result = { level: level === 'FAIL' ? 'fail' : level, check: about, ...drive, message };
    this.results.push(result);
    this.print(`${level.padEnd(5)} ${about.padEnd(ABOUT_WIDTH)} ${message}`);
  }
}

export function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}

/** Possible causes of a failed call, and their corrections. */
export interface Advice {
  /** The scope that the call needs. */
  readonly scope: string;
  /** The function that davgate lacks without the scope. If given, a missing scope is only a warning. */
  readonly without?: string;
  /** Returns how to fix a failure that has a special meaning here. */
  readonly fix?: (error: ApiError) => string | undefined;
}

/** Returns the result of a call of the service; reports a failure and returns `undefined`. */
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
    const fix = advice.fix?.(error);
    const found = `${withoutSource(error.message)}${fix === undefined ? fixFor(error, advice) : `; ${fix}`}`;
    if (error.failure === 'not-allowed' && advice.without !== undefined)
      report.warn(about, `${found}; until then: ${advice.without}`);
    else report.fail(about, found);
    return undefined;
  }
}

/** Shortens a message of OpenSSL to its reason: it also names an error number and a line of OpenSSL's source. */
function withoutSource(message: string): string {
  return message.replace(/[0-9A-F]+:error:[0-9A-F]+:[^:]*:[^:]*:([^:]+):\S+:\d+:\s*/g, '$1');
}

/** OpenSSL's messages for an answer that is not TLS, most likely plain HTTP. */
const WITHOUT_TLS = /wrong version number|packet length too long|unknown protocol/i;

function fixFor({ failure, message }: ApiError, { scope }: Advice): string {
  switch (failure) {
    case 'not-allowed':
      return `; choose the scope ${scope} for the app in the service's developer console, then log in again`;
    case 'unauthorized':
      return '; get a new token, or log in again (davgate login --remove, then davgate login)';
    case 'wrong-namespace':
      return '; correct --namespace ("namespace" in a configuration file), or give the account access to it';
    case 'offline':
      if (WITHOUT_TLS.test(message))
        return '; the port does not use TLS: write http:// in the address, or the port for https';
      return /cert|tls|ssl/i.test(message)
        ? '; its certificate is not trusted here: check the address, and this machine’s clock and certificates'
        : '; check the address, this machine’s network and its proxy';
    case 'foreign':
      return '; check the address (--api-url), this machine’s network and its proxy';
    case 'rate-limited':
      return '; too many calls for this app and account: wait, or stop other programs that use them';
    case 'insufficient-space':
      return '; free some space in the account';
    default:
      return '';
  }
}
