import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

type Interfaces = ReturnType<typeof networkInterfaces>;

/** Returns the URLs at which other machines reach a server that listens on all addresses at `url`. */
export function urlsForOthers(
  host: string,
  url: string,
  interfaces: Interfaces = networkInterfaces(),
): readonly string[] {
  if (host !== '0.0.0.0' && host !== '::') return [];
  const { protocol, port, pathname } = new URL(url);
  return Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => `${protocol}//${address}${port === '' ? '' : `:${port}`}${pathname}`);
}

/** Returns the names of a certificate (PEM); none if it is valid for the host of `url`. */
export function namesOfCertificate(certFile: string, url: string): readonly string[] {
  const certificate = new X509Certificate(readFileSync(certFile));
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '');
  const isFor = isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host);
  if (isFor !== undefined) return [];
  const names = certificate.subjectAltName?.split(', ') ?? [];
  return names.map((name) => name.replace(/^(DNS|IP Address):/, ''));
}
