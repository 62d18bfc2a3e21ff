interface Switch {
  readonly max: number;
  readonly help: string;
}

const share = (help: string): Switch => ({ max: 1, help });
const anyNumber = (help: string): Switch => ({ max: Number.MAX_SAFE_INTEGER, help });

/**
 * All faults, for tests of a client of this API. Each is a number, and 0 is off. `--help` and docs/service/faults.md
 * are generated from this table. Shares are of the calls that the fault concerns, from 0 to 1. A call is a `read` when
 * it downloads, a `write` when it changes something, and otherwise `metadata`.
 */
export const SWITCHES = {
  'rate-per-second': anyNumber('calls per second of one app for one account; more get 429 too_many_requests'),
  'rate-burst': anyNumber("calls that may arrive at once after a pause; 0: one second's"),
  'rate-text-share': share('share of these 429s that are text/plain instead of JSON'),
  'contention-hold-ms': anyNumber(
    'extra duration of each commit; others in its namespace get 429 too_many_write_operations meanwhile',
  ),
  'contention-entry-share': share(
    'share of the entries of a finish_batch that fail with too_many_write_operations while the others succeed',
  ),
  'error-metadata-share': share('share of metadata calls that fail with 500, 502 or 503 and have no effect'),
  'error-read-share': share('the same for downloads'),
  'error-write-share': share('the same for writes'),
  'error-burst': anyNumber('calls of the kind that fail in a row each time'),
  'latency-metadata-ms': anyNumber('extra duration of each metadata call'),
  'latency-read-ms': anyNumber('the same for downloads'),
  'latency-write-ms': anyNumber('the same for writes'),
  'bandwidth-bytes-per-second': anyNumber('of one connection, in each direction'),
  'cut-share': share('share of downloads whose connection breaks in the middle'),
  'cut-after-bytes': anyNumber('after how many bytes they break; 0: anywhere'),
  'corrupt-share': share('share of downloads with a wrong byte'),
  'lost-answer-share': share(
    'share of writes that take effect, but whose connection breaks before the answer',
  ),
  'token-lifetime-seconds': anyNumber(
    'lifetime of access tokens from `/oauth2/token`, whatever expires_in says',
  ),
  'session-lifetime-seconds': anyNumber('lifetime of upload sessions'),
  seed: anyNumber('of the random numbers: the same calls in the same order have the same faults'),
} as const satisfies Readonly<Record<string, Switch>>;

export type FaultSwitch = keyof typeof SWITCHES;

/** Faults that are not named are off. */
export type FaultSettings = Readonly<Partial<Record<FaultSwitch, number>>>;

/** An unknown fault, or a value that it cannot have; `message` says what is possible. */
export class FaultSettingError extends Error {
  override readonly name = 'FaultSettingError';
}

/** Throws `FaultSettingError`. */
export function checkFaults(settings: FaultSettings): void {
  for (const [name, value] of Object.entries(settings)) {
    if (!isSwitch(name)) throw new FaultSettingError(`${name}: no such fault; ${LISTED}`);
    const { max } = SWITCHES[name];
    if (!(value >= 0 && value <= max))
      throw new FaultSettingError(
        `${name}=${value}: give a number from 0 to ${max === 1 ? '1' : 'whatever you need'}`,
      );
  }
}

/** Parses texts like `latency-read-ms=50`. Throws `FaultSettingError`. */
export function parseFaults(texts: readonly string[]): FaultSettings {
  const settings: Partial<Record<FaultSwitch, number>> = {};
  for (const text of texts) {
    const [name = '', number = ''] = text.split('=', 2);
    if (!isSwitch(name)) throw new FaultSettingError(`${name}: no such fault; ${LISTED}`);
    // `Number('')` is 0, which would turn off a fault that the caller meant to turn on.
    if (number.trim() === '')
      throw new FaultSettingError(`${name}: a number is missing; write ${name}=NUMBER`);
    settings[name] = Number(number);
  }
  checkFaults(settings);
  return settings;
}

const LISTED = 'davgate service run --help lists them';

function isSwitch(name: string): name is FaultSwitch {
  return Object.hasOwn(SWITCHES, name);
}
