import { describe, expect, test } from 'vitest';
import { ACCESS_TOKEN_LIFETIME_SECONDS, EXPIRED_KEPT_MS } from '../../../src/service/accounts/tokens.ts';
import {
  addAccount,
  addApp,
  HOUR_MS,
  NOW_MS,
  newConsent,
  type OpenTwice,
  raceOfAll,
} from './directory-under-test.ts';

const LIFETIME_MS = ACCESS_TOKEN_LIFETIME_SECONDS * 1000;

/** Tests an implementation of `Tokens` and of `Grants`. */
export function tokensContract(driver: string, open: OpenTwice): void {
  describe(`the tokens in ${driver}`, () => {
    test('an access token leads to its account, app and scopes, and says when it has expired', async () => {
      const { directory, other } = await open();
      const account = await addAccount(directory, 'ann@example.org', 'Team');
      const app = await addApp(directory, { scopes: ['sharing.read', 'files.content.read'] });
      const consent = { accountId: account.id, appKey: app.key, scopes: ['files.content.read'] } as const;
      const token = await directory.tokens.grantAccess(NOW_MS, consent, NOW_MS + HOUR_MS);
      const bearer = { account, appKey: app.key, scopes: consent.scopes, appScopes: app.scopes };
      expect(token).toMatch(/^sl\./);
      expect(await other.tokens.bearer(NOW_MS + HOUR_MS - 1, token)).toEqual({ ...bearer, expired: false });
      expect(await other.tokens.bearer(NOW_MS + HOUR_MS, token)).toEqual({ ...bearer, expired: true });
    });

    test('a token without an end is valid until it is revoked with its consent', async () => {
      const { directory, other } = await open();
      const consent = await newConsent(directory);
      const [token, kept] = [
        await directory.tokens.grantAccess(NOW_MS, consent),
        await directory.tokens.grantAccess(NOW_MS, consent),
      ];
      expect(await other.tokens.bearer(NOW_MS * 2, token)).toMatchObject({ expired: false });
      await other.tokens.revoke(token);
      await other.tokens.revoke('unknown');
      expect(await directory.tokens.bearer(NOW_MS, token)).toBeUndefined();
      expect(await directory.tokens.bearer(NOW_MS, kept)).toBeDefined();
    });

    test('a refresh token gives access tokens of four hours, and ends when one of them is revoked', async () => {
      const { directory, other } = await open();
      const consent = await newConsent(directory, { scopes: ['files.content.read', 'sharing.read'] });
      const refreshToken = await directory.tokens.grantRefreshable(NOW_MS, consent);
      const request = { refreshToken, appKey: consent.appKey, hasSecret: true };
      const issued = await other.tokens.refresh(NOW_MS, request);
      if (typeof issued !== 'object') throw new Error(issued);
      expect(issued.scopes).toEqual(consent.scopes);
      const { tokens } = directory;
      expect(await tokens.bearer(NOW_MS + LIFETIME_MS - 1, issued.token)).toMatchObject({ expired: false });
      expect(await tokens.bearer(NOW_MS + LIFETIME_MS, issued.token)).toMatchObject({ expired: true });
      expect(await tokens.isRefreshToken(refreshToken)).toBe(true);
      expect(await tokens.isRefreshToken(issued.token)).toBe(false);
      await other.tokens.revoke(issued.token);
      expect(await tokens.refresh(NOW_MS, request)).toBeUndefined();
      expect(await tokens.isRefreshToken(refreshToken)).toBe(false);
    });

    test('a refresh is refused to other apps, without the secret, and for more scopes than granted', async () => {
      const { directory } = await open();
      const consent = await newConsent(directory, { scopes: ['files.content.read', 'sharing.read'] });
      const refreshToken = await directory.tokens.grantRefreshable(NOW_MS, consent);
      const right = { refreshToken, appKey: consent.appKey, hasSecret: true };
      const refresh = (fields: object) => directory.tokens.refresh(NOW_MS, { ...right, ...fields });
      expect(await refresh({ appKey: (await addApp(directory)).key })).toBeUndefined();
      expect(await refresh({ appKey: `${consent.appKey}\0` })).toBeUndefined();
      expect(await refresh({ refreshToken: 'guessed' })).toBeUndefined();
      expect(await refresh({ hasSecret: false })).toBe('secret');
      expect(await refresh({ scopes: ['sharing.read', 'sharing.write'] })).toBe('scope');
      expect(await refresh({ scopes: ['sharing.read'] })).toMatchObject({ scopes: ['sharing.read'] });
    });

    test('a public consent is refreshed without the secret', async () => {
      const { directory } = await open();
      const consent = await newConsent(directory, { isPublic: true });
      const refreshToken = await directory.tokens.grantRefreshable(NOW_MS, consent);
      const request = { refreshToken, appKey: consent.appKey, hasSecret: false };
      expect(await directory.tokens.refresh(NOW_MS, request)).toMatchObject({ scopes: consent.scopes });
    });

    test('concurrent refreshes all give a valid token, unless the consent is revoked meanwhile', async () => {
      const opened = await open();
      const consent = await newConsent(opened.directory);
      const refreshToken = await opened.directory.tokens.grantRefreshable(NOW_MS, consent);
      const refresh = () =>
        raceOfAll(opened, ({ tokens }) =>
          tokens.refresh(NOW_MS, { refreshToken, appKey: consent.appKey, hasSecret: true }),
        );
      const issued = await refresh();
      expect(new Set(issued.map((one) => (typeof one === 'object' ? one.token : one))).size).toBe(
        issued.length,
      );
      const [{ number } = { number: 0 }] = await opened.directory.grants.all();
      const [late, wasRevoked] = await Promise.all([refresh(), opened.other.grants.revoke(number)]);
      expect(wasRevoked).toBe(true);
      for (const one of [...issued, ...late])
        expect(
          typeof one === 'object' ? await opened.directory.tokens.bearer(NOW_MS, one.token) : one,
        ).toBeUndefined();
    });

    test('access tokens are forgotten in steps once they expired long ago', async () => {
      const { directory, other } = await open();
      const consent = await newConsent(directory);
      const token = (expiresMs?: number) => directory.tokens.grantAccess(NOW_MS, consent, expiresMs);
      await Promise.all([token(NOW_MS - 3), token(NOW_MS - 2), token(NOW_MS - 1)]);
      const kept = [await token(NOW_MS), await token()];
      expect(await directory.tokens.forgetOld(NOW_MS + EXPIRED_KEPT_MS, 2)).toBe(2);
      expect(await other.tokens.forgetOld(NOW_MS + EXPIRED_KEPT_MS, 2)).toBe(1);
      expect(await directory.tokens.forgetOld(NOW_MS + EXPIRED_KEPT_MS, 2)).toBe(0);
      for (const one of kept) expect(await directory.tokens.bearer(NOW_MS, one)).toBeDefined();
    });
  });

  describe(`the consents in ${driver}`, () => {
    test('all consents are listed newest first, with their tokens', async () => {
      const { directory, other } = await open();
      const consent = await newConsent(directory);
      await directory.tokens.grantRefreshable(NOW_MS, { ...consent, isPublic: true });
      await directory.tokens.grantAccess(NOW_MS + 1, consent, NOW_MS + HOUR_MS);
      await directory.tokens.grantAccess(NOW_MS + 2, consent);
      const common = { ...consent, isPublic: false, hasRefreshToken: false, tokens: 1 };
      const all = await other.grants.all();
      expect(all).toEqual([
        { ...common, number: expect.any(Number), createdMs: NOW_MS + 2, expiresMs: undefined },
        { ...common, number: expect.any(Number), createdMs: NOW_MS + 1, expiresMs: NOW_MS + HOUR_MS },
        {
          ...common,
          number: expect.any(Number),
          createdMs: NOW_MS,
          expiresMs: undefined,
          tokens: 0,
          isPublic: true,
          hasRefreshToken: true,
        },
      ]);
      expect(new Set(all.map(({ number }) => number)).size).toBe(3);
    });

    test('a consent counts all its access tokens and names the last expiry', async () => {
      const { directory } = await open();
      const consent = await newConsent(directory);
      const refreshToken = await directory.tokens.grantRefreshable(NOW_MS, consent);
      const request = { refreshToken, appKey: consent.appKey, hasSecret: true };
      for (const nowMs of [NOW_MS + 5, NOW_MS]) await directory.tokens.refresh(nowMs, request);
      expect(await directory.grants.all()).toMatchObject([
        { tokens: 2, expiresMs: NOW_MS + 5 + LIFETIME_MS },
      ]);
    });

    test('a revoked consent is gone with its tokens, and is revoked once', async () => {
      const opened = await open();
      const consent = await newConsent(opened.directory);
      const token = await opened.directory.tokens.grantAccess(NOW_MS, consent);
      const [{ number } = { number: 0 }] = await opened.directory.grants.all();
      const revoked = await raceOfAll(opened, ({ grants }) => grants.revoke(number));
      expect(revoked.filter(Boolean)).toHaveLength(1);
      expect(await opened.directory.tokens.bearer(NOW_MS, token)).toBeUndefined();
    });

    test('isGiven compares scopes, and whether the consent lasts until it is revoked', async () => {
      const { directory } = await open();
      const consent = await newConsent(directory, { scopes: ['files.content.read', 'sharing.read'] });
      expect(await directory.grants.isGiven(consent, false)).toBe(false);
      await directory.tokens.grantAccess(NOW_MS, consent, NOW_MS + HOUR_MS);
      expect(await directory.grants.isGiven(consent, false)).toBe(true);
      expect(await directory.grants.isGiven(consent, true)).toBe(false);
      await directory.tokens.grantRefreshable(NOW_MS, { ...consent, scopes: ['sharing.read'] });
      expect(await directory.grants.isGiven(consent, true)).toBe(false);
      expect(await directory.grants.isGiven({ ...consent, scopes: ['sharing.read'] }, true)).toBe(true);
    });

    test('users of an app are counted once each, and an app at its maximum may have no further ones', async () => {
      const { directory, other } = await open();
      const app = await addApp(directory, { status: 'development' });
      const accounts = await Promise.all(
        Array.from({ length: 51 }, (_, index) => addAccount(directory, `${index}@example.org`)),
      );
      const ids = accounts.map(({ id }) => id);
      for (const accountId of [...ids.slice(0, 50), ...ids.slice(0, 2)])
        await directory.tokens.grantAccess(NOW_MS, { accountId, appKey: app.key, scopes: [] });
      const [first = '', last = ''] = [ids[0], ids[50]];
      expect(await other.grants.linkedUsers(NOW_MS, app.key)).toBe(50);
      expect(await other.grants.mayLink(NOW_MS, app, first)).toBe(true);
      expect(await other.grants.mayLink(NOW_MS, app, last)).toBe(false);
      expect(await other.grants.mayLink(NOW_MS, { ...app, status: 'production' }, last)).toBe(true);
    });

    test('a consent whose tokens are all forgotten links its account until the next consent replaces it', async () => {
      const { directory } = await open();
      const consent = await newConsent(directory);
      await directory.tokens.grantAccess(NOW_MS, consent, NOW_MS);
      const laterMs = NOW_MS + EXPIRED_KEPT_MS + 1;
      expect(await directory.tokens.forgetOld(laterMs, 10)).toBe(1);
      expect(await directory.grants.linkedUsers(laterMs, consent.appKey)).toBe(1);
      await directory.tokens.grantRefreshable(laterMs, consent);
      expect(await directory.grants.all()).toMatchObject([{ hasRefreshToken: true }]);
    });
  });
}
