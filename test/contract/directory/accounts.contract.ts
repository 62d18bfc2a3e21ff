import { describe, expect, test } from 'vitest';
import {
  addAccount,
  addApp,
  HOUR_MS,
  NOW_MS,
  newHome,
  type OpenTwice,
  person,
  race,
  raceOfAll,
} from './directory-under-test.ts';

/** Tests an implementation of `Accounts`. */
export function accountsContract(driver: string, open: OpenTwice): void {
  describe(`the accounts in ${driver}`, () => {
    test('an added account is found by address, id and home, with all its fields', async () => {
      const { directory, other } = await open();
      const fields = person({ mayDeletePermanently: true, passwordHash: Buffer.from('hash') });
      const home = newHome();
      const added = await directory.accounts.add(fields, home);
      expect(added).toEqual({ ...fields, id: added.id, namespace: home });
      expect(added.id).toMatch(/^dbid:.{35}$/);
      expect(await other.accounts.withEmail(fields.email)).toEqual(added);
      expect(await other.accounts.find(added.id)).toEqual(added);
      expect(await other.accounts.ofHome(home)).toEqual(added);
    });

    test('an account that does not exist is not found', async () => {
      const { accounts } = (await open()).directory;
      expect(await accounts.withEmail('nobody@example.org')).toBeUndefined();
      expect(await accounts.find('dbid:nobody')).toBeUndefined();
      expect(await accounts.ofHome('7')).toBeUndefined();
    });

    test('an address with U+0000 belongs to no account', async () => {
      const { directory } = await open();
      await addAccount(directory, 'ann@example.org');
      expect(await directory.accounts.withEmail('ann@example.org\0')).toBeUndefined();
    });

    test('a lookup by address ignores the case of A to Z and of no other letter', async () => {
      const { directory } = await open();
      const [ann, umlaut, capital] = [
        await addAccount(directory, 'Ann@example.org'),
        await addAccount(directory, 'äz@example.org'),
        await addAccount(directory, 'Äz@example.org'),
      ];
      expect((await directory.accounts.withEmail('aNN@EXAMPLE.org'))?.id).toBe(ann.id);
      expect((await directory.accounts.withEmail('äZ@example.org'))?.id).toBe(umlaut.id);
      expect((await directory.accounts.withEmail('ÄZ@example.org'))?.id).toBe(capital.id);
    });

    test('an address that differs only in the case of A to Z is refused, and changes nothing', async () => {
      const { directory } = await open();
      await addAccount(directory, 'ann@example.org');
      await expect(addAccount(directory, 'ANN@example.org', 'New team')).rejects.toThrow(/unique/i);
      expect((await directory.accounts.all()).map(({ email }) => email)).toEqual(['ann@example.org']);
    });

    test('of concurrent calls that add one address, exactly one succeeds', async () => {
      const opened = await open();
      const added = await race(opened, (directory, index) =>
        addAccount(directory, index % 3 === 0 ? 'ann@example.org' : 'Ann@Example.org'),
      );
      expect(await opened.directory.accounts.all()).toEqual(added);
      expect(added).toHaveLength(1);
    });

    test('findAll returns the accounts in the order of the ids, and undefined for unknown ones', async () => {
      const { directory } = await open();
      const [ann, bob] = [
        await addAccount(directory, 'a@example.org'),
        await addAccount(directory, 'b@example.org'),
      ];
      const found = await directory.accounts.findAll([bob.id, 'dbid:nobody', ann.id, bob.id]);
      expect(found).toEqual([bob, undefined, ann, bob]);
      expect(await directory.accounts.findAll([])).toEqual([]);
    });

    test('all accounts are sorted by the bytes of their addresses, with A to Z in lower case', async () => {
      const { directory } = await open();
      const sorted = ['a_z@x', 'Ab@x', 'AC@x', 'b-a@x', 'b@x', 'z@x', 'ä@x'];
      for (const email of [...sorted].reverse()) await addAccount(directory, email);
      expect((await directory.accounts.all()).map(({ email }) => email)).toEqual(sorted);
    });

    test('change replaces the fields it is given and keeps the others', async () => {
      const { directory, other } = await open();
      const added = await addAccount(directory);
      const passwordHash = Buffer.from('new');
      await other.accounts.change(added.id, { surname: 'Other', limitBytes: 2 ** 45, passwordHash });
      const changed = { ...added, surname: 'Other', limitBytes: 2 ** 45, passwordHash };
      expect(await directory.accounts.find(added.id)).toEqual(changed);
      await directory.accounts.change('dbid:nobody', { surname: 'X' });
      expect(await directory.accounts.all()).toEqual([changed]);
    });

    test('concurrent changes of different fields are all kept', async () => {
      const opened = await open();
      const added = await addAccount(opened.directory);
      const fields = {
        givenName: 'Given',
        surname: 'Sur',
        mayDeletePermanently: true,
        limitBytes: 7,
        passwordHash: Buffer.from('hash'),
      };
      const changes = Object.entries(fields).map((field) => Object.fromEntries([field]));
      await raceOfAll(opened, async ({ accounts }, index) => accounts.change(added.id, changes[index] ?? {}));
      expect(await opened.directory.accounts.find(added.id)).toEqual({ ...added, ...fields });
    });

    test('of concurrent calls that give an account without a password one, exactly one does', async () => {
      const opened = await open();
      const { id } = await addAccount(opened.directory);
      const added = await raceOfAll(opened, ({ accounts }, index) =>
        accounts.addPassword(id, Buffer.from(`hash ${index}`)),
      );
      expect(added.filter(Boolean)).toHaveLength(1);
      const { passwordHash } = (await opened.directory.accounts.find(id)) ?? {};
      expect(passwordHash).toEqual(Buffer.from(`hash ${added.indexOf(true)}`));
      expect(await opened.directory.accounts.addPassword('dbid:nobody', Buffer.from('hash'))).toBe(false);
    });

    test('members of a team share its space, and each has a folder of its own in it', async () => {
      const { directory, other } = await open();
      const first = await addAccount(directory, 'a@example.org', 'Research');
      const second = await addAccount(other, 'b@example.org', 'research');
      expect(first.team).toMatchObject({ homePath: '/Ann Lee', homeNamespace: first.namespace });
      expect(second.team).toMatchObject({ homePath: '/Ann Lee (1)', homeNamespace: second.namespace });
      expect(second.team?.namespace).toBe(first.team?.namespace);
      const team = { ...second.team, name: 'Research' };
      expect(await directory.accounts.find(second.id)).toEqual({ ...second, team });
    });

    test('concurrent first members of a team get one space and different folders', async () => {
      const opened = await open();
      const members = await raceOfAll(opened, (directory, index) =>
        addAccount(directory, `${index}@example.org`, index % 3 === 0 ? 'Research' : 'RESEARCH'),
      );
      expect(new Set(members.map(({ team }) => team?.namespace)).size).toBe(1);
      expect(new Set(members.map(({ team }) => team?.homePath)).size).toBe(members.length);
    });

    test('removing an account removes all that belongs to it, and nothing of others', async () => {
      const { directory, other } = await open();
      const [ann, bob, app] = [
        await addAccount(directory),
        await addAccount(directory, 'b@x'),
        await addApp(directory),
      ];
      const tokens = await Promise.all([ann, bob].map(({ id }) => fill(directory, id, app.key)));
      await other.accounts.remove(ann.id);
      expect(await leftOf(directory, ann.id, app.key, tokens[0])).toEqual([]);
      expect(await leftOf(directory, bob.id, app.key, tokens[1])).toHaveLength(8);
      expect(await directory.accounts.all()).toEqual([bob]);
    });

    test('the home of a removed account is listed until it is forgotten; a team keeps its members’ folders', async () => {
      const { directory, other } = await open();
      const [ann, bob] = [await addAccount(directory, 'a@x'), await addAccount(directory, 'b@x', 'Team')];
      await directory.accounts.remove(ann.id);
      await directory.accounts.remove(bob.id);
      await directory.accounts.remove('dbid:nobody');
      expect(await other.accounts.abandonedHomes()).toEqual([ann.namespace]);
      await other.accounts.forgetHome(ann.namespace);
      expect(await directory.accounts.abandonedHomes()).toEqual([]);
    });

    test('an account can be removed while other processes add rows that belong to it', async () => {
      const opened = await open();
      const { id } = await addAccount(opened.directory);
      await Promise.all([
        race(opened, ({ tags }, index) => tags.add(id, 'id:item', `tag_${index}`)),
        opened.other.accounts.remove(id),
      ]);
      expect(await opened.directory.accounts.find(id)).toBeUndefined();
      expect(await opened.directory.tags.of(id, ['id:item'])).toEqual([[]]);
    });
  });
}

type Secrets = Awaited<ReturnType<typeof fill>>;
type Directory = Awaited<ReturnType<OpenTwice>>['directory'];

/** Adds one thing of each kind to an account. */
async function fill(directory: Directory, accountId: string, appKey: string) {
  const link = {
    accountId,
    itemId: 'id:item',
    itemKind: 'file',
    visibility: 'public',
    allowDownload: true,
  } as const;
  await directory.tags.add(accountId, 'id:item', 'tag');
  const consent = { accountId, appKey, scopes: [] };
  const app = await directory.apps.withKey(appKey);
  if (!app) throw new Error('no such app');
  await directory.signedIn.add(`browser of ${accountId}`, {
    accountId,
    passwordHash: Buffer.from('hash'),
    signedInFor: '',
    expiresMs: NOW_MS + HOUR_MS,
  });
  await directory.jobRows.add(
    { id: `job of ${accountId}`, account: accountId, app: appKey, kind: 'k' },
    'node',
    NOW_MS + HOUR_MS,
  );
  return {
    code: await directory.codes.issue(NOW_MS, app, { ...consent, isOffline: false }),
    token: await directory.tokens.grantAccess(NOW_MS, consent),
    reference: (await directory.copyReferences.ofItem(NOW_MS, accountId, 'id:item')).reference,
    link: (await directory.links.add(NOW_MS, link)).link.token,
    temporary: await directory.temporaryLinks.add(
      { kind: 'download', accountId, rev: '1' },
      NOW_MS + HOUR_MS,
    ),
  };
}

/** Returns what is left of the things that `fill` added. */
async function leftOf(directory: Directory, account: string, app: string, secrets: Secrets | undefined) {
  if (!secrets) throw new Error('nothing was added');
  const { code, token, reference, link, temporary } = secrets;
  const found = [
    (await directory.tags.of(account, ['id:item']))[0]?.[0],
    await directory.signedIn.find(NOW_MS, `browser of ${account}`),
    await directory.jobRows.find(NOW_MS, { id: `job of ${account}`, account, app, kind: 'k' }),
    await directory.tokens.bearer(NOW_MS, token),
    await directory.copyReferences.find(NOW_MS, reference),
    await directory.links.withToken(link),
    await directory.temporaryLinks.download(temporary, NOW_MS),
    await directory.codes.exchange(NOW_MS, { code, appKey: app, hasSecret: true }),
  ];
  return found.filter((one) => one !== undefined && one !== 'code');
}
