import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { onTestFinished } from 'vitest';

type Answer = (response: ServerResponse, request: IncomingMessage, body: string) => void;

/** An OpenID Connect provider without a login form, whose answers a test can spoil. */
export interface TokenIssuer {
  readonly issuer: string;
  /** The requests so far, like `POST /token`. */
  readonly asked: string[];
  /** The headers and the body of the last request for tokens. */
  tokenRequest: { readonly authorization: string | undefined; readonly form: URLSearchParams };
  /** Claims of the next tokens beside those that a valid one needs; `undefined` leaves one out. */
  claims: JWTPayload;
  /** The key of the next tokens, and its algorithm. */
  signature: { readonly alg: string; readonly key: CryptoKey | Uint8Array };
  /** Further fields of its description. */
  description: object;
  /** What it says about the user beside the token. */
  userInfo: object;
  /** Answers in place of the provider, by the path. */
  readonly answers: Map<string, Answer>;
  stop(): Promise<void>;
}

const OWN = await generateKeyPair('RS256');

/** A key that the issuer does not publish. */
export const OTHER_KEY = (await generateKeyPair('RS256')).privateKey;

/** Starts an issuer until the end of the test. */
export async function startTokenIssuer(clientId: string): Promise<TokenIssuer> {
  const jwk = { ...(await exportJWK(OWN.publicKey)), kid: 'one', alg: 'RS256', use: 'sig' };
  const server = createServer(async (request, response) => {
    const path = (request.url ?? '').replace(/\?.*/, '');
    issuer.asked.push(`${request.method} ${path}`);
    let body = '';
    for await (const piece of request) body += String(piece);
    const answer = issuer.answers.get(path) ?? usual.get(path);
    if (answer) answer(response, request, body);
    else response.writeHead(404).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a port is an AddressInfo
  const url = `http://127.0.0.1:${port}`;
  const json = (response: ServerResponse, value: unknown) =>
    void response.setHeader('Content-Type', 'application/json').end(JSON.stringify(value));
  const description = {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    userinfo_endpoint: `${url}/userinfo`,
    response_types_supported: ['code'],
    id_token_signing_alg_values_supported: ['RS256'],
  };
  const usual = new Map<string, Answer>([
    [
      '/.well-known/openid-configuration',
      (response) => json(response, { ...description, ...issuer.description }),
    ],
    ['/keys', (response) => json(response, { keys: [jwk] })],
    ['/userinfo', (response) => json(response, { sub: 'subject', ...issuer.userInfo })],
    [
      '/token',
      async (response, { headers }, body) => {
        issuer.tokenRequest = { authorization: headers.authorization, form: new URLSearchParams(body) };
        const seconds = Math.floor(Date.now() / 1000);
        const claims = { iss: url, aud: clientId, sub: 'subject', iat: seconds, exp: seconds + 60 };
        const token = new SignJWT({ ...claims, ...issuer.claims })
          .setProtectedHeader({ alg: issuer.signature.alg, kid: 'one' })
          .sign(issuer.signature.key);
        json(response, { access_token: 'an access token', token_type: 'Bearer', id_token: await token });
      },
    ],
  ]);
  const issuer: TokenIssuer = {
    issuer: url,
    asked: [],
    tokenRequest: { authorization: undefined, form: new URLSearchParams() },
    claims: { preferred_username: 'ann' },
    signature: { alg: 'RS256', key: OWN.privateKey },
    description: {},
    userInfo: {},
    answers: new Map(),
    async stop() {
      server.closeAllConnections();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
  onTestFinished(() => issuer.stop());
  return issuer;
}
