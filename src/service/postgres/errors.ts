import { DatabaseError } from 'pg';

/** A PostgreSQL database cannot be used; `message` names it, without a password, the reason and the remedy. */
export class PostgresError extends Error {
  override readonly name = 'PostgresError';

  constructor(
    readonly reason: 'address' | 'newer' | 'unusable',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/**
 * A server that answers, and is not used. The code is the SQLSTATE of a rejected connection, after which callers try again: the
 * address may lead to another server by then.
 */
export class RejectedServerError extends Error {
  override readonly name = 'RejectedServerError';
  readonly code = '08004';
}

/** Remedies by SQLSTATE, or its class of two characters (PostgreSQL manual, appendix A). */
const REMEDIES: Readonly<Record<string, string>> = {
  '28': 'refuses the user or the password: check both in its address',
  '3D': 'does not exist: create it with createdb',
  '42501': 'does not allow its user to create tables: grant CREATE on the database',
  '53': 'has no connections, memory or disk space left: free some, or raise its limits',
  '57014': 'is locked by another process for too long: try again',
};

/** SQLSTATE classes for failures of the connection, and of a server that starts or stops. */
const UNREACHABLE = /^(08|57)/;

/**
 * Returns the error that tells the operator why the database called `name` cannot be opened. Returns other failures
 * unchanged: errors of our own statements.
 */
export function openingFailure(failure: unknown, name: string): unknown {
  if (!(failure instanceof Error) || failure instanceof PostgresError) return failure;
  if (failure instanceof RejectedServerError)
    return new PostgresError('unusable', failure.message, { cause: failure });
  const state = sqlStateOf(failure);
  const remedy = REMEDIES[state] ?? REMEDIES[state.slice(0, 2)];
  if (remedy) return new PostgresError('unusable', `${name} ${remedy}`, { cause: failure });
  if (state !== '' && !UNREACHABLE.test(state)) return failure;
  // The error of a host with several addresses has a code and no message.
  const reason = failure.message === '' && 'code' in failure ? String(failure.code) : failure.message;
  return new PostgresError(
    'unusable',
    `${name} cannot be reached (${reason}): check its address, and that it runs`,
    { cause: failure },
  );
}

/** Returns the SQLSTATE of an error of the server, or `''` for another failure. */
export function sqlStateOf(failure: unknown): string {
  return failure instanceof DatabaseError ? (failure.code ?? '') : '';
}
