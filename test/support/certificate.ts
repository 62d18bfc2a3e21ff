import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { succeed } from './command.ts';

/** A self-signed certificate, which clients must be given as an authority. */
export interface Certificate {
  readonly key: string;
  readonly cert: string;
  /** Path of a file with `cert`. */
  readonly file: string;
  /** Path of a file with `key`. */
  readonly keyFile: string;
  remove(): Promise<void>;
}

/** Makes a certificate for these names and this address, valid for a day. */
export async function makeCertificate(names: readonly string[], address: string): Promise<Certificate> {
  const directory = await mkdtemp(join(tmpdir(), 'davgate-certificate-'));
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'cert.pem')];
  const alternatives = [...names.map((name) => `DNS:${name}`), `IP:${address}`].join(',');
  await succeed('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'],
    ...['-subj', '/CN=a test', '-addext', `subjectAltName=${alternatives}`, '-keyout', key, '-out', cert],
  ]);
  return {
    key: await readFile(key, 'utf8'),
    cert: await readFile(cert, 'utf8'),
    file: cert,
    keyFile: key,
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
