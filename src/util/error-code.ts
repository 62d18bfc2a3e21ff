/** Returns the code of an error of Node's, SQLite's or a library's, such as `ENOSPC`; `''` without one. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}
