/**
 * Names of the errors that a person at the command line has to fix; their message is one line that says how. By name,
 * because errors from the service's thread arrive without their class.
 */
const START_FAILURES: ReadonlySet<string> = new Set([
  'AdminError',
  'ConfigError',
  'CopyError',
  'OtherOwner',
  'StateInUse',
  'StateUnavailable',
  'StateUnwritable',
  'VolatileState',
  'BucketError',
  'DataDirectoryError',
  'DriveAccountError',
  'DriveUnusable',
  'ListenError',
  'CertificateError',
  'PasswordHashError',
  'PostgresError',
  'PathError',
]);

export function isStartFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return START_FAILURES.has(
    'reason' in error && error.name === 'EmbeddedServiceFailure' ? String(error.reason) : error.name,
  );
}
