/** The address cannot be listened on; `message` names it and says what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';

  constructor(address: string, code: string | undefined, cause: unknown) {
    super(`cannot listen on ${address}: ${REASONS[code ?? ''] ?? `the system says ${code ?? cause}`}`, {
      cause,
    });
  }
}

const REASONS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses that port; stop it, or choose another with --listen',
  EACCES: 'this user may not use that port; choose one above 1023 with --listen',
  EADDRNOTAVAIL: 'this machine does not have that address; choose another with --listen',
  ENOTFOUND: 'no address is known for that name; write an IP address for --listen',
  EAI_AGAIN: 'no address is known for that name; write an IP address for --listen',
};

/** The certificate or its key cannot be used; `message` names the file and says what to do. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}
