import { describe, expect, test } from 'vitest';
import { addAccount, HOUR_MS, NOW_MS, type OpenTwice, raceOfAll } from './directory-under-test.ts';

/** Tests an implementation of `SignedInBrowsers`. */
export function signInsContract(driver: string, open: OpenTwice): void {
  const opened = async () => {
    const { directory, other } = await open();
    const signedIn = {
      accountId: (await addAccount(directory)).id,
      passwordHash: Buffer.from('hash'),
      signedInFor: 'client_id=1&state=%00',
      expiresMs: NOW_MS + HOUR_MS,
    };
    return { browsers: directory.signedIn, others: other.signedIn, signedIn };
  };

  describe(`the sign-ins in ${driver}`, () => {
    test('a sign-in is found by its id until it expires', async () => {
      const { browsers, others, signedIn } = await opened();
      await browsers.add('id', signedIn);
      expect(await others.find(NOW_MS + HOUR_MS - 1, 'id')).toEqual(signedIn);
      expect(await others.find(NOW_MS + HOUR_MS, 'id')).toBeUndefined();
      expect(await others.find(NOW_MS, 'unknown')).toBeUndefined();
    });

    test('a spent sign-in stays, for no request', async () => {
      const { browsers, others, signedIn } = await opened();
      await browsers.add('id', signedIn);
      await others.spend('id');
      expect(await browsers.find(NOW_MS, 'id')).toEqual({ ...signedIn, signedInFor: '' });
    });

    test('a removed sign-in is gone', async () => {
      const { browsers, others, signedIn } = await opened();
      for (const id of ['id', 'kept']) await browsers.add(id, signedIn);
      await others.remove('id');
      expect(await browsers.find(NOW_MS, 'id')).toBeUndefined();
      expect(await browsers.find(NOW_MS, 'kept')).toBeDefined();
    });

    test('expired sign-ins are forgotten in steps', async () => {
      const { browsers, signedIn } = await opened();
      for (const offset of [-2, -1, 0, 1])
        await browsers.add(String(offset), { ...signedIn, expiresMs: NOW_MS + offset });
      const forget = () => browsers.forgetOld(NOW_MS, 2);
      expect([await forget(), await forget(), await forget()]).toEqual([2, 1, 0]);
      expect(await browsers.find(NOW_MS, '1')).toBeDefined();
    });
  });
}

const KEYS = { name: 'digest of a name', client: 'digest of a client' };

/** Tests an implementation of `GuessRows`. */
export function guessesContract(driver: string, open: OpenTwice): void {
  describe(`the wrong passwords in ${driver}`, () => {
    test('update stores the counts that its function returns, and returns the ones before', async () => {
      const { directory, other } = await open();
      const counts = { name: { wrong: 3, expiresMs: NOW_MS }, client: { wrong: 1, expiresMs: NOW_MS + 1 } };
      const none = { name: undefined, client: undefined };
      expect(await directory.guesses.update(KEYS, () => counts)).toEqual(none);
      expect(await other.guesses.find(KEYS)).toEqual(counts);
      expect(await other.guesses.update(KEYS, ({ client }) => ({ name: undefined, client }))).toEqual(counts);
      expect(await directory.guesses.find(KEYS)).toEqual({ ...counts, name: undefined });
    });

    test('an update that changes nothing stores nothing', async () => {
      const { directory } = await open();
      await directory.guesses.update(KEYS, (counts) => counts);
      expect(await directory.guesses.find(KEYS)).toEqual({ name: undefined, client: undefined });
      expect(await directory.guesses.forgetOld(NOW_MS, 10)).toBe(0);
    });

    test('an update whose function throws throws the same error and changes nothing', async () => {
      const { directory } = await open();
      const counts = { name: { wrong: 3, expiresMs: NOW_MS }, client: undefined };
      await directory.guesses.update(KEYS, () => counts);
      const failure = new Error('failed');
      const update = directory.guesses.update(KEYS, () => {
        throw failure;
      });
      await expect(update).rejects.toBe(failure);
      expect(await directory.guesses.find(KEYS)).toEqual(counts);
    });

    test('concurrent guesses of one client for several names all count', async () => {
      const opened = await open();
      const guesses = await raceOfAll(opened, (directory, index) =>
        directory.guesses.update({ ...KEYS, name: `name ${index % 4}` }, ({ name, client }) => ({
          name: { wrong: (name?.wrong ?? 0) + 1, expiresMs: NOW_MS },
          client: { wrong: (client?.wrong ?? 0) + 1, expiresMs: NOW_MS },
        })),
      );
      const before = guesses.map(({ client }) => client?.wrong ?? 0).sort((a, b) => a - b);
      expect(before).toEqual(guesses.map((_, index) => index));
      expect(await opened.directory.guesses.find({ ...KEYS, name: 'name 3' })).toEqual({
        name: { wrong: guesses.length / 4, expiresMs: NOW_MS },
        client: { wrong: guesses.length, expiresMs: NOW_MS },
      });
    });

    test('guesses that no longer count are forgotten in steps', async () => {
      const { directory } = await open();
      for (const offset of [-2, -1, 0, 1])
        await directory.guesses.update({ name: `n${offset}`, client: `c${offset}` }, () => ({
          name: { wrong: 1, expiresMs: NOW_MS + offset },
          client: undefined,
        }));
      const forget = () => directory.guesses.forgetOld(NOW_MS, 2);
      expect([await forget(), await forget(), await forget()]).toEqual([2, 1, 0]);
      expect((await directory.guesses.find({ name: 'n1', client: 'c1' })).name).toBeDefined();
    });
  });
}
