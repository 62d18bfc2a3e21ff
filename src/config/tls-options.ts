/** The settings of https. */
export const TLS_OPTIONS = [
  {
    name: 'tls-cert',
    variable: 'DAVGATE_TLS_CERT',
    value: 'FILE',
    help: 'serve https with this certificate (PEM)',
  },
  {
    name: 'tls-key',
    variable: 'DAVGATE_TLS_KEY',
    value: 'FILE',
    help: "the certificate's private key (PEM)",
  },
  {
    name: 'tls-client-ca',
    variable: 'DAVGATE_TLS_CLIENT_CA',
    value: 'FILE',
    help: 'certificate authorities (PEM): each client needs a certificate of one of them, beside its login',
  },
  {
    name: 'http2',
    variable: 'DAVGATE_HTTP2',
    value: 'on|off',
    default: 'on',
    help: 'whether https offers HTTP/2 beside HTTP/1.1',
  },
] as const;
