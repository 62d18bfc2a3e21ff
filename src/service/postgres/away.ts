/** The database with the metadata is away. */
export class DatabaseAwayError extends Error {
  override readonly name = 'DatabaseAwayError';
}

/**
 * SQLSTATEs after which the same statements may succeed on a new connection: a connection that failed (class 08), a server
 * that ends, starts, or has become a standby, a deadlock.
 */
const PASSING = /^(08...|57P0[1-4]|25006|40001|40P01|E[A-Z]+)$/;

/** Returns whether a statement failed with its connection, or for want of one. */
export function isConnectionLost(failure: unknown): boolean {
  if (failure instanceof DatabaseAwayError) return true;
  // A name with several addresses: one failure each.
  if (failure instanceof AggregateError) return failure.errors.every(isConnectionLost);
  if (!(failure instanceof Error)) return false;
  const code = 'code' in failure ? String(failure.code) : '';
  if (code !== '') return PASSING.test(code);
  // The client's own failures have no code.
  return /^(Connection terminated|Query read timeout|timeout exceeded|Client has)/.test(failure.message);
}
