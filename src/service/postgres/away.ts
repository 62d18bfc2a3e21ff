import { errorCodeOf } from '../../util/error-code.ts';

/** The database with the metadata is away. */
export class DatabaseAwayError extends Error {
  override readonly name = 'DatabaseAwayError';
}

/**
 * Codes after which the same statements may succeed on a new connection: SQLSTATEs of a connection that failed (class 08), of
 * a server that ends, starts, has become a standby or has no free connection, of an idle transaction that was ended, and
 * of a deadlock; and those of the network.
 */
const PASSING = new Set([
  ...['57P01', '57P02', '57P03', '57P05', '25006', '25P03', '53300', '40001', '40P01'],
  ...['ECONNREFUSED', 'ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH'],
  ...['EAI_AGAIN', 'ENOTFOUND'],
]);

/** Returns whether a statement failed with its connection, or for want of one. */
export function isConnectionLost(failure: unknown): boolean {
  if (failure instanceof DatabaseAwayError) return true;
  // A name with several addresses: one failure each.
  if (failure instanceof AggregateError) return failure.errors.every(isConnectionLost);
  if (!(failure instanceof Error)) return false;
  const code = errorCodeOf(failure);
  if (code !== '') return PASSING.has(code) || /^(08|ERR_SSL)/.test(code);
  // The client's own failures have no code.
  return /^(Connection terminated|Query read timeout|timeout exceeded|Client has)/.test(failure.message);
}
