import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { Provider } from 'oidc-provider';
import { freePort } from './free-port.ts';

export const CLIENT_ID = 'davgate';
export const CLIENT_SECRET = 'a secret of davgate at the provider';

/** An OpenID Connect provider whose login form takes any name with any password. */
export interface IdentityProvider {
  readonly issuer: string;
  /** Registers davgate with the address at which it takes back a browser. */
  register(...redirectUris: readonly string[]): void;
  /** Cuts the connections on which davgate asks for tokens, until `restart`. */
  cutTokens(): void;
  /** Ends its server, until `restart`. */
  stop(): Promise<void>;
  /** Listens again at the same address. */
  restart(): Promise<void>;
}

/** Starts a provider that knows no client. */
export async function startIdentityProvider(): Promise<IdentityProvider> {
  let handle: RequestListener = (_request, response) => response.writeHead(503).end();
  let isCutting = false;
  const answer: RequestListener = (request, response) =>
    isCutting && request.url === '/token' ? request.socket.destroy() : handle(request, response);
  const port = await freePort();
  let server = createServer(answer).listen(port, '127.0.0.1');
  await once(server, 'listening');
  const issuer = `http://localhost:${port}`;
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const keys = [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'one' }];
  return {
    issuer,
    register(...redirectUris) {
      const client = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: redirectUris };
      handle = new Provider(issuer, {
        clients: [client],
        jwks: { keys },
        cookies: { keys: ['a key of the cookies'] },
        pkce: { required: () => true },
        ttl: { AccessToken: 3600, Grant: 3600, IdToken: 3600, Interaction: 3600, Session: 3600 },
        claims: { openid: ['sub'], profile: ['preferred_username'], email: ['email', 'email_verified'] },
        findAccount: (_context: unknown, id: string) => ({
          accountId: id,
          claims: () => ({ sub: id, preferred_username: id, email: `${id}@example.com` }),
        }),
      }).callback();
    },
    cutTokens() {
      isCutting = true;
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
    async restart() {
      isCutting = false;
      server = createServer(answer).listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
  };
}
