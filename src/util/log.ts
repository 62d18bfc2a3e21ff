/** Facts of one event, by name. Never a token, a password or a whole header. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Where every room says what happened; `event` is a short sentence that does not vary. */
export interface Log {
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

export const silentLog: Log = { info() {}, warn() {}, error() {} };
