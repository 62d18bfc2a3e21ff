import { ConfigError, oneOf, type Settings } from './settings.ts';

/** https, and its PEM files. */
export interface TlsConfig {
  readonly certFile: string;
  readonly keyFile: string;
  /** The authorities of whose certificates each client needs one; `undefined`: a client needs none. */
  readonly clientCaFile?: string | undefined;
  /** Whether clients may speak HTTP/2. */
  readonly hasHttp2: boolean;
}

/** Returns how davgate serves https; `undefined` if it does not. Throws `ConfigError`. */
export function tlsOf(settings: Settings): TlsConfig | undefined {
  const cert = settings.get('tls-cert');
  const key = settings.get('tls-key');
  const clientCa = settings.get('tls-client-ca');
  const http2 = settings.get('http2');
  const hasHttp2 = oneOf(http2, ['on', 'off']) === 'on';
  const needsTls = clientCa ?? (hasHttp2 ? http2 : undefined);
  if (needsTls && !cert && !key)
    throw new ConfigError(`${needsTls.origin}: needs https; give --tls-cert and --tls-key too`);
  if (!cert && !key) return undefined;
  if (!cert) throw new ConfigError(`${key?.origin}: a key without its certificate; give --tls-cert too`);
  if (!key) throw new ConfigError(`${cert.origin}: a certificate without its key; give --tls-key too`);
  return { certFile: cert.text, keyFile: key.text, clientCaFile: clientCa?.text, hasHttp2 };
}
