import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { hostname } from 'node:os';
import type { TLSSocket } from 'node:tls';
import type { ListenerLimits } from './limits.ts';

/** PEM files. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities of whose certificates each client needs one; `undefined`: a client needs none. */
  readonly clientCaFile?: string | undefined;
}

/** Number of checks for overdue headers within the timeout of a header. */
const HEADER_CHECKS = 4;

/** The address cannot be listened on; `message` names it and says what to do. */
export class ListenError extends Error {
  override readonly name = 'ListenError';

  constructor(address: string, reason: string, cause: unknown) {
    super(`cannot listen on ${address}: ${reason}`, { cause });
  }
}

const LISTEN_FAILURES: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program uses that port; stop it, or choose another with --listen',
  EACCES: 'this user may not use that port; choose one above 1023 with --listen',
  EADDRNOTAVAIL: 'this machine does not have that address; choose another with --listen',
  ENOTFOUND: 'the name has no known address; write an IP address for --listen',
  EAI_AGAIN: 'the name has no known address; write an IP address for --listen',
};

/** The certificate or its key cannot be used; `message` names the file and says what to do. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}

/**
 * Creates a Node server that does not listen yet, for HTTPS with `tls`. With `hasHttp2` it offers HTTP/2 too, and leaves such
 * connections to others. Throws `CertificateError`.
 */
export function createNodeServer(
  tls: CertificateFiles | undefined,
  limits: ListenerLimits,
  { hasHttp2 }: { readonly hasHttp2: boolean },
): Server {
  const options: ServerOptions = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    // Node would cut every upload that takes longer; `cutIdleConnections` cuts those that make no progress.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.ceil(limits.headersTimeoutMs / HEADER_CHECKS),
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // `malformedRefusal` checks it: after Node's own answer the connection's next request would still be handled.
    requireHostHeader: false,
    insecureHTTPParser: false,
  };
  const server = tls ? secureServer(options, tls, { limits, hasHttp2 }) : createServer(options);
  // Node silently drops fields beyond its limit, perhaps a condition among them; `malformedRefusal` refuses instead.
  server.maxHeadersCount = 0;
  return server;
}

function secureServer(
  options: ServerOptions,
  tls: CertificateFiles,
  { limits, hasHttp2 }: { readonly limits: ListenerLimits; readonly hasHttp2: boolean },
): TlsServer {
  const certificate = readCertificate(tls);
  const server = usable(tls, () =>
    createTlsServer({
      ...options,
      ...certificate,
      requestCert: tls.clientCaFile !== undefined,
      minVersion: 'TLSv1.2',
      handshakeTimeout: limits.headersTimeoutMs,
      ALPNProtocols: hasHttp2 ? ['h2', 'http/1.1'] : ['http/1.1'],
    }),
  );
  if (hasHttp2) leaveHttp2(server);
  return server;
}

/**
 * Takes the connections of HTTP/2 from Node's own listener, which reads HTTP/1.1. Node's `allowHTTP1` of a server for HTTP/2
 * would ignore the limits and timeouts in `ServerOptions`.
 */
function leaveHttp2(server: TlsServer): void {
  const own = server.listeners('secureConnection');
  server.removeAllListeners('secureConnection');
  server.on('secureConnection', (socket: TLSSocket) => {
    if (!isHttp2(socket)) for (const serve of own) serve.call(server, socket);
  });
}

export function isHttp2({ alpnProtocol }: TLSSocket): boolean {
  return alpnProtocol === 'h2';
}

/**
 * Uses these files for new connections. Whether clients need a certificate stays as it is. Throws `CertificateError`, and
 * then keeps the old ones.
 */
export function replaceCertificate(server: Server, tls: CertificateFiles): void {
  if (!(server instanceof TlsServer))
    throw new Error('cannot replace the certificate of a server without TLS');
  const certificate = readCertificate(tls);
  usable(tls, () => server.setSecureContext({ ...certificate, minVersion: 'TLSv1.2' }));
}

function readCertificate({ certFile, keyFile, clientCaFile }: CertificateFiles) {
  const ca = clientCaFile === undefined ? undefined : readAuthorities(clientCaFile);
  return { cert: read(certFile, 'certificate'), key: read(keyFile, 'key'), ...(ca && { ca }) };
}

/** Node would take a file without a certificate, and refuse every client. */
function readAuthorities(file: string): Buffer {
  const authorities = read(file, 'certificate of the authority');
  try {
    new X509Certificate(authorities);
  } catch (error) {
    throw new CertificateError(
      `${file} has no certificate of an authority: give the PEM file of the one that issues the clients' certificates`,
      { cause: error },
    );
  }
  return authorities;
}

function usable<T>(tls: CertificateFiles, use: () => T): T {
  try {
    return use();
  } catch (error) {
    throw new CertificateError(
      `cannot serve https with ${tls.certFile} and ${tls.keyFile}: ${(error as Error).message}; ` +
        'give a PEM certificate and the PEM key it was made for',
      { cause: error },
    );
  }
}

function read(file: string, what: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const reason =
      code === 'ENOENT' ? 'no such file' : code === 'EACCES' ? 'this user may not read it' : code;
    throw new CertificateError(`cannot read the ${what} ${file}: ${reason}`, { cause: error });
  }
}

/** Resolves with the port once the server listens. Throws `ListenError`. */
export function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const reason = LISTEN_FAILURES[error.code ?? ''] ?? `the system says ${error.code ?? error}`;
      reject(new ListenError(`${bracketed(host)}:${port}`, reason, error));
    };
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}

/**
 * Returns the address at which other machines reach a server, without a slash at the end. This machine's name stands for
 * 0.0.0.0, which can be listened on but not connected to.
 */
export function urlFromOutside(host: string, port: number, isSecure: boolean): string {
  const name = host === '0.0.0.0' || host === '::' ? hostname() : bracketed(host);
  return `${isSecure ? 'https' : 'http'}://${name}:${port}`;
}

/** Returns `host` as it is written in a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
