/** Fields of one event, by name. Never a token, a password or a whole header. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Logs events. `event` is a short, constant text; everything that varies goes into the fields. */
export interface Log {
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}

/** A log that discards everything. */
export const silentLog: Log = { info() {}, warn() {}, error() {} };
