import { readFileSync } from 'node:fs';
import { createServer, type Server, type ServerOptions } from 'node:http';
import { createServer as createTlsServer, Server as TlsServer } from 'node:https';
import { hostname } from 'node:os';
import { CertificateError, ListenError } from './errors.ts';
import type { ListenerLimits } from './limits.ts';

/** PEM files. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** Looks for overdue headers this often in the time they have. */
const HEADER_LOOKS = 4;

/** A server of Node's that does not listen yet, for HTTPS with `tls`. Throws `CertificateError`. */
export function createNodeServer(tls: CertificateFiles | undefined, limits: ListenerLimits): Server {
  const options: ServerOptions = {
    maxHeaderSize: limits.headerBytesMax,
    headersTimeout: limits.headersTimeoutMs,
    // Node would cut every upload that takes longer; `cutStalls` cuts those that stand still instead.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.ceil(limits.headersTimeoutMs / HEADER_LOOKS),
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // `wrongShape` sees to it: behind Node's own answer the next request of the connection would still be handled.
    requireHostHeader: false,
    insecureHTTPParser: false,
  };
  const server = tls ? secureServer(options, tls, limits) : createServer(options);
  // Node drops the fields beyond this silently, and with them perhaps a condition; `wrongShape` refuses instead.
  server.maxHeadersCount = 0;
  return server;
}

function secureServer(options: ServerOptions, tls: CertificateFiles, limits: ListenerLimits): TlsServer {
  const certificate = readCertificate(tls);
  return usable(tls, () =>
    createTlsServer({
      ...options,
      ...certificate,
      minVersion: 'TLSv1.2',
      handshakeTimeout: limits.headersTimeoutMs,
    }),
  );
}

/** Uses this certificate for new connections. Throws `CertificateError`, and then goes on with the old one. */
export function replaceCertificate(server: Server, tls: CertificateFiles): void {
  if (!(server instanceof TlsServer)) throw new Error('a server without TLS was given a certificate');
  const certificate = readCertificate(tls);
  usable(tls, () => server.setSecureContext({ ...certificate, minVersion: 'TLSv1.2' }));
}

function readCertificate(tls: CertificateFiles): { readonly cert: Buffer; readonly key: Buffer } {
  return { cert: read(tls.certFile, 'certificate'), key: read(tls.keyFile, 'key') };
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
    const fail = (error: NodeJS.ErrnoException) =>
      reject(new ListenError(`${bracketed(host)}:${port}`, error.code, error));
    server.once('error', fail);
    server.listen(port, host, () => {
      server.off('error', fail);
      const address = server.address();
      resolve(typeof address === 'object' && address ? address.port : port);
    });
  });
}

/**
 * The address of a server as other machines can reach it, without a slash at the end: 0.0.0.0 is an address to listen on and
 * none to go to, so this machine's name stands for it.
 */
export function urlFromOutside(host: string, port: number, isSecure: boolean): string {
  const name = host === '0.0.0.0' || host === '::' ? hostname() : bracketed(host);
  return `${isSecure ? 'https' : 'http'}://${name}:${port}`;
}

/** `host` as it stands in a URL. */
export function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
