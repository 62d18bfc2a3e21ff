import { describe, expect, test } from 'vitest';
import { addApp, NOW_MS, newConsent, type OpenTwice, raceOfAll } from './directory-under-test.ts';

/** Tests an implementation of `Apps`. */
export function appsContract(driver: string, open: OpenTwice): void {
  describe(`the apps in ${driver}`, () => {
    test('an added app is found by its key, with all its fields and its secret', async () => {
      const { directory, other } = await open();
      const fields = {
        name: 'Näme',
        status: 'applied',
        scopes: ['files.content.read', 'sharing.read'],
        redirectUris: ['https://example.org/?a=1', 'http://localhost/"\\'],
      } as const;
      const { app, secret } = await directory.apps.add(fields);
      expect(app).toEqual({ ...fields, key: app.key });
      expect(await other.apps.withKey(app.key)).toEqual(app);
      expect(await other.apps.isSecret(app.key, secret)).toBe(true);
      expect(await other.apps.isSecret(app.key, `${secret}x`)).toBe(false);
    });

    test('an unknown key, also one with U+0000, belongs to no app and has no secret', async () => {
      const { directory } = await open();
      const { key } = await addApp(directory);
      for (const unknown of ['unknown', `${key}\0`]) {
        expect(await directory.apps.withKey(unknown)).toBeUndefined();
        expect(await directory.apps.isSecret(unknown, 'secret')).toBe(false);
      }
    });

    test('all apps are sorted by the bytes of their names', async () => {
      const { directory } = await open();
      for (const name of ['b', 'ä', 'a_b', 'Z', 'aB']) await addApp(directory, { name });
      expect((await directory.apps.all()).map(({ name }) => name)).toEqual(['Z', 'aB', 'a_b', 'b', 'ä']);
    });

    test('change replaces the fields it is given and keeps the others', async () => {
      const { directory, other } = await open();
      const app = await addApp(directory, { status: 'development' });
      await other.apps.change(app.key, { name: 'New', redirectUris: ['https://example.org/'] });
      await other.apps.change('unknown', { name: 'Other' });
      expect(await directory.apps.all()).toEqual([
        { ...app, name: 'New', redirectUris: ['https://example.org/'] },
      ]);
    });

    test('concurrent changes of different fields are all kept', async () => {
      const opened = await open();
      const { key } = await addApp(opened.directory, { status: 'development' });
      await raceOfAll(opened, ({ apps }, index) =>
        apps.change(key, index < 8 ? { name: 'New' } : { status: 'applied' }),
      );
      expect(await opened.directory.apps.withKey(key)).toMatchObject({ name: 'New', status: 'applied' });
    });

    test('a renewed secret replaces the old one at once', async () => {
      const { directory, other } = await open();
      const { app, secret } = await directory.apps.add({
        name: 'App',
        status: 'production',
        scopes: [],
        redirectUris: [],
      });
      const renewed = await other.apps.renewSecret(app.key);
      expect(await directory.apps.isSecret(app.key, renewed)).toBe(true);
      expect(await directory.apps.isSecret(app.key, secret)).toBe(false);
    });

    test('removing an app ends its consents, tokens and codes, and keeps those of other apps', async () => {
      const { directory, other } = await open();
      const consent = await newConsent(directory);
      const app = await directory.apps.withKey(consent.appKey);
      const kept = { ...consent, appKey: (await addApp(directory)).key };
      if (!app) throw new Error('no such app');
      const token = await directory.tokens.grantAccess(NOW_MS, consent);
      const keptToken = await directory.tokens.grantAccess(NOW_MS, kept);
      await directory.codes.issue(NOW_MS, app, { ...consent, isOffline: true });
      await other.apps.remove(app.key);
      expect(await directory.apps.withKey(app.key)).toBeUndefined();
      expect(await directory.tokens.bearer(NOW_MS, token)).toBeUndefined();
      expect(await directory.tokens.bearer(NOW_MS, keptToken)).toMatchObject({ appKey: kept.appKey });
      expect((await directory.grants.all()).map(({ appKey }) => appKey)).toEqual([kept.appKey]);
    });

    test('an app can be removed while other processes add consents to it', async () => {
      const opened = await open();
      const consent = await newConsent(opened.directory);
      const adding = Array.from({ length: 8 }, () =>
        opened.directory.tokens.grantAccess(NOW_MS, consent).catch(() => 'removed'),
      );
      await opened.other.apps.remove(consent.appKey);
      await Promise.all(adding);
      expect(await opened.directory.apps.withKey(consent.appKey)).toBeUndefined();
      expect(await opened.directory.grants.all()).toEqual([]);
    });
  });
}
