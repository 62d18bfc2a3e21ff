import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { App } from '../../../src/service/accounts/apps.ts';
import { CODE_LIFETIME_MS, type CodeRequest, USED_KEPT_MS } from '../../../src/service/accounts/codes.ts';
import type { Directory } from '../../../src/service/directory/directory.ts';
import {
  addAccount,
  addApp,
  HOUR_MS,
  NOW_MS,
  type OpenedTwice,
  type OpenTwice,
  raceOfAll,
} from './directory-under-test.ts';

const VERIFIER = 'v'.repeat(43);
const CHALLENGE = {
  method: 'S256',
  value: createHash('sha256').update(VERIFIER).digest('base64url'),
} as const;

interface Issued {
  readonly opened: OpenedTwice;
  readonly app: App;
  readonly code: string;
  readonly accountId: string;
  readonly home: string;
}

/** Issues a code for a new account and a new app. */
async function issued(open: OpenTwice, fields: Partial<CodeRequest> = {}): Promise<Issued> {
  const opened = await open();
  const [account, app] = [await addAccount(opened.directory), await addApp(opened.directory)];
  const code = await issueTo(opened.directory, app, account.id, fields);
  return { opened, app, code, accountId: account.id, home: account.namespace };
}

function issueTo(
  { codes }: Directory,
  app: App,
  accountId: string,
  fields: Partial<CodeRequest> = {},
  nowMs = NOW_MS,
): Promise<string> {
  const request = { accountId, appKey: app.key, scopes: ['files.content.read'], isOffline: false } as const;
  return codes.issue(nowMs, app, { ...request, ...fields });
}

/** Tests an implementation of `Codes`. */
export function codesContract(driver: string, open: OpenTwice): void {
  describe(`the codes in ${driver}`, () => {
    test('a code is exchanged for a token of its account with its scopes, and works once', async () => {
      const { opened, app, code, accountId, home } = await issued(open);
      const request = { code, appKey: app.key, hasSecret: true };
      const exchanged = await opened.other.codes.exchange(NOW_MS, request);
      if (typeof exchanged === 'string') throw new Error(exchanged);
      expect(exchanged).toMatchObject({ accountId, namespace: home, scopes: ['files.content.read'] });
      expect(exchanged).not.toHaveProperty('refreshToken');
      const bearer = await opened.directory.tokens.bearer(NOW_MS, exchanged.token);
      expect(bearer).toMatchObject({ appKey: app.key, scopes: ['files.content.read'], expired: false });
      expect(await opened.directory.codes.exchange(NOW_MS, request)).toBe('code');
    });

    test('the exchange of an offline code returns a refresh token too', async () => {
      const { opened, app, code } = await issued(open, { isOffline: true });
      const exchanged = await opened.other.codes.exchange(NOW_MS, { code, appKey: app.key, hasSecret: true });
      if (typeof exchanged === 'string') throw new Error(exchanged);
      expect(await opened.directory.tokens.isRefreshToken(exchanged.refreshToken ?? '')).toBe(true);
    });

    test('of concurrent exchanges of one code without proof of the app, exactly one gets a token, which stays valid', async () => {
      const { opened, app, code } = await issued(open);
      const results = await raceOfAll(opened, ({ codes }) =>
        codes.exchange(NOW_MS, { code, appKey: app.key, hasSecret: false }),
      );
      const [winner, ...more] = results.filter((result) => typeof result === 'object');
      expect(more).toEqual([]);
      expect(await opened.directory.tokens.bearer(NOW_MS, winner?.token ?? '')).toBeDefined();
      expect(await opened.directory.grants.all()).toHaveLength(1);
    });

    test('of concurrent exchanges of one code by its app, exactly one gets a token, which the reuse revokes', async () => {
      const { opened, app, code } = await issued(open, { isOffline: true });
      const results = await raceOfAll(opened, ({ codes }) =>
        codes.exchange(NOW_MS, { code, appKey: app.key, hasSecret: true }),
      );
      const [winner, ...more] = results.filter((result) => typeof result === 'object');
      expect(winner).toBeDefined();
      expect(more).toEqual([]);
      expect(await opened.directory.tokens.bearer(NOW_MS, winner?.token ?? '')).toBeUndefined();
      expect(await opened.directory.grants.all()).toEqual([]);
    });

    test('a code works for its own app alone, with its redirect URI and its verifier, until it expires', async () => {
      const redirectUri = 'https://example.org/';
      const { opened, app, code } = await issued(open, { redirectUri, challenge: CHALLENGE });
      const { codes } = opened.directory;
      const right = { code, appKey: app.key, hasSecret: false, redirectUri, verifier: VERIFIER };
      const stranger = await addApp(opened.directory);
      expect(await codes.exchange(NOW_MS, { ...right, appKey: stranger.key })).toBe('code');
      expect(await codes.exchange(NOW_MS, { ...right, appKey: `${app.key}\0` })).toBe('code');
      expect(await codes.exchange(NOW_MS, { ...right, code: 'guessed' })).toBe('code');
      expect(await codes.exchange(NOW_MS, { ...right, redirectUri: 'https://example.com/' })).toBe(
        'redirect_uri',
      );
      expect(await codes.exchange(NOW_MS, { ...right, verifier: 'x' })).toBe('verifier');
      expect(await codes.exchange(NOW_MS + CODE_LIFETIME_MS, right)).toBe('code');
      expect(await codes.exchange(NOW_MS + CODE_LIFETIME_MS - 1, right)).toMatchObject({
        scopes: expect.anything(),
      });
    });

    test('a consent of an app that used PKCE instead of its secret is public', async () => {
      const { opened, app, code } = await issued(open, { challenge: CHALLENGE, isOffline: true });
      const request = { code, appKey: app.key, hasSecret: false, verifier: VERIFIER };
      expect(await opened.directory.codes.exchange(NOW_MS, request)).toBeTypeOf('object');
      expect(await opened.directory.grants.all()).toMatchObject([{ isPublic: true, hasRefreshToken: true }]);
    });

    test('concurrent codes for more accounts than an app may have make no more than its maximum of users', async () => {
      const opened = await open();
      const app = await addApp(opened.directory, { status: 'development' });
      const accounts = await Promise.all(
        Array.from({ length: 56 }, (_, index) => addAccount(opened.directory, `${index}@example.org`)),
      );
      for (const { id } of accounts.slice(0, 45)) await issueTo(opened.directory, app, id);
      const results = await raceOfAll(opened, (directory, index) =>
        issueTo(directory, app, accounts[45 + (index % 11)]?.id ?? ''),
      );
      expect(await opened.other.grants.linkedUsers(NOW_MS, app.key)).toBe(50);
      expect(results).toContain('full');
    });

    test('a code that is not exchanged stops counting as a user when it expires', async () => {
      const { opened, app, accountId } = await issued(open);
      const { grants } = opened.other;
      expect(await grants.linkedUsers(NOW_MS + CODE_LIFETIME_MS - 1, app.key)).toBe(1);
      expect(await grants.linkedUsers(NOW_MS + CODE_LIFETIME_MS, app.key)).toBe(0);
      await issueTo(opened.directory, app, accountId);
      expect(await grants.linkedUsers(NOW_MS, app.key)).toBe(1);
    });

    test('issuing a code forgets codes that expired long ago', async () => {
      const { opened, app, accountId, code } = await issued(open);
      await issueTo(opened.other, app, accountId, {}, NOW_MS + CODE_LIFETIME_MS + USED_KEPT_MS);
      expect(
        await opened.directory.codes.exchange(NOW_MS, { code, appKey: app.key, hasSecret: true }),
      ).toBeTypeOf('object');
      const old = await issueTo(opened.directory, app, accountId);
      await issueTo(opened.other, app, accountId, {}, NOW_MS + CODE_LIFETIME_MS + USED_KEPT_MS + HOUR_MS);
      const again = { code: old, appKey: app.key, hasSecret: true };
      expect(await opened.directory.codes.exchange(NOW_MS, again)).toBe('code');
    });

    test('a code for an account that does not exist is refused', async () => {
      const { opened, app } = await issued(open);
      await expect(issueTo(opened.directory, app, 'dbid:nobody')).rejects.toThrow(/foreign key/i);
    });
  });
}
