import { describe, expect, test } from 'vitest';
import { EXPIRED_KEPT_MS, type NewLink } from '../../../src/service/links/links.ts';
import { addAccount, HOUR_MS, NOW_MS, type OpenTwice, raceOfAll } from './directory-under-test.ts';

function linkTo(accountId: string, itemId = 'id:item', fields: Partial<NewLink> = {}): NewLink {
  return { accountId, itemId, itemKind: 'file', visibility: 'public', allowDownload: true, ...fields };
}

/** Tests an implementation of `Links`. */
export function linksContract(driver: string, open: OpenTwice): void {
  describe(`the links in ${driver}`, () => {
    test('an added link is found by its token and by its item, with all its fields', async () => {
      const { directory, other } = await open();
      const { id } = await addAccount(directory);
      const fields = linkTo(id, 'id:item', {
        itemKind: 'folder',
        visibility: 'password',
        passwordHash: Buffer.from('hash'),
        expiresMs: NOW_MS + HOUR_MS,
        allowDownload: false,
      });
      const { link, isNew } = await directory.links.add(NOW_MS, fields);
      const { token, rlkey, sequence } = link;
      expect(isNew).toBe(true);
      expect(link).toEqual({ ...fields, token, rlkey, sequence });
      expect(await other.links.withToken(link.token)).toEqual(link);
      expect(await other.links.ofItems(id, ['id:item'])).toEqual([link]);
      expect(await other.links.withToken('unknown')).toBeUndefined();
      expect(await other.links.withToken(`${link.token}\0`)).toBeUndefined();
    });

    test('an item that has a link keeps it, unchanged', async () => {
      const { directory, other } = await open();
      const { id } = await addAccount(directory);
      const { link } = await directory.links.add(NOW_MS, linkTo(id));
      const again = await other.links.add(NOW_MS, linkTo(id, 'id:item', { allowDownload: false }));
      expect(again).toEqual({ link, isNew: false });
    });

    test('a link that has expired is replaced by one with another token and a larger number', async () => {
      const { directory, other } = await open();
      const { id } = await addAccount(directory);
      const hash = { visibility: 'password', passwordHash: Buffer.from('hash') } as const;
      const { link } = await directory.links.add(
        NOW_MS,
        linkTo(id, 'id:item', { ...hash, expiresMs: NOW_MS + 1 }),
      );
      const { link: later } = await directory.links.add(NOW_MS, linkTo(id, 'id:later'));
      const replaced = await other.links.add(NOW_MS + 1, linkTo(id));
      expect(replaced.isNew).toBe(true);
      expect(replaced.link.token).not.toBe(link.token);
      expect(replaced.link.sequence).toBeGreaterThan(later.sequence);
      expect(replaced.link).not.toHaveProperty('passwordHash');
      expect(await directory.links.withToken(link.token)).toBeUndefined();
      expect(await directory.links.ofAccount(id, 0, 10)).toEqual([later, replaced.link]);
    });

    test('concurrent calls that add a link to one item get the same link, new to one of them', async () => {
      const opened = await open();
      const { id } = await addAccount(opened.directory);
      for (const nowMs of [NOW_MS, NOW_MS + HOUR_MS]) {
        const added = await raceOfAll(opened, ({ links }) =>
          links.add(nowMs, linkTo(id, 'id:item', { expiresMs: nowMs + HOUR_MS })),
        );
        expect(new Set(added.map(({ link }) => link.token)).size).toBe(1);
        expect(added.filter(({ isNew }) => isNew)).toHaveLength(1);
      }
      expect(await opened.directory.links.ofAccount(id, 0, 10)).toHaveLength(1);
    });

    test('ofItems returns links in the order of the items, without those of other accounts', async () => {
      const { directory } = await open();
      const [ann, bob] = [await addAccount(directory), await addAccount(directory, 'b@x')];
      const add = async (accountId: string, itemId: string) =>
        (await directory.links.add(NOW_MS, linkTo(accountId, itemId))).link;
      const [one, two] = [await add(ann.id, 'id:1'), await add(ann.id, 'id:2')];
      await add(bob.id, 'id:3');
      expect(await directory.links.ofItems(ann.id, ['id:2', 'id:3', 'id:1'])).toEqual([two, one]);
      expect(await directory.links.ofItems(ann.id, [])).toEqual([]);
    });

    test('ofAccount returns the account’s links page by page, oldest first', async () => {
      const { directory } = await open();
      const [ann, bob] = [await addAccount(directory), await addAccount(directory, 'b@x')];
      for (const itemId of ['id:3', 'id:1', 'id:2'])
        await directory.links.add(NOW_MS, linkTo(ann.id, itemId));
      await directory.links.add(NOW_MS, linkTo(bob.id));
      const first = await directory.links.ofAccount(ann.id, 0, 2);
      const second = await directory.links.ofAccount(ann.id, first[1]?.sequence ?? 0, 2);
      expect([...first, ...second].map(({ itemId }) => itemId)).toEqual(['id:3', 'id:1', 'id:2']);
    });

    test('change stores what its function makes of the current link', async () => {
      const { directory, other } = await open();
      const { id } = await addAccount(directory);
      const { link } = await directory.links.add(NOW_MS, linkTo(id));
      const passwordHash = Buffer.from('hash');
      const fields = {
        visibility: 'password',
        passwordHash,
        expiresMs: NOW_MS,
        allowDownload: false,
      } as const;
      const changed = await other.links.change(link.token, (current) => ({ ...current, ...fields }));
      expect(changed).toEqual({ ...link, ...fields });
      expect(await directory.links.withToken(link.token)).toEqual(changed);
      await other.links.change(link.token, () => link);
      expect(await directory.links.withToken(link.token)).toEqual(link);
      expect(await other.links.change('unknown', (current) => current)).toBeUndefined();
    });

    test('a change whose function throws throws the same error and leaves the link as it is', async () => {
      const { directory } = await open();
      const { id } = await addAccount(directory);
      const { link } = await directory.links.add(NOW_MS, linkTo(id));
      const refusal = new Error('refused');
      const change = directory.links.change(link.token, () => {
        throw refusal;
      });
      await expect(change).rejects.toBe(refusal);
      expect(await directory.links.withToken(link.token)).toEqual(link);
    });

    test('concurrent changes each get the result of the one before', async () => {
      const opened = await open();
      const { id } = await addAccount(opened.directory);
      const { link } = await opened.directory.links.add(NOW_MS, linkTo(id, 'id:item', { expiresMs: NOW_MS }));
      const changed = await raceOfAll(opened, ({ links }) =>
        links.change(link.token, (current) => ({ ...current, expiresMs: (current.expiresMs ?? 0) + 1 })),
      );
      expect(await opened.directory.links.withToken(link.token)).toEqual({
        ...link,
        expiresMs: NOW_MS + changed.length,
      });
    });

    test('a removed link is gone; removing it again has no effect', async () => {
      const { directory, other } = await open();
      const { id } = await addAccount(directory);
      const { link } = await directory.links.add(NOW_MS, linkTo(id));
      for (const { links } of [other, directory]) await links.remove(link.token);
      expect(await directory.links.withToken(link.token)).toBeUndefined();
    });

    test('links are forgotten in steps once they expired long ago', async () => {
      const { directory } = await open();
      const { id } = await addAccount(directory);
      for (const offset of [-3, -2, -1, 0])
        await directory.links.add(0, linkTo(id, `id:${offset}`, { expiresMs: NOW_MS + offset }));
      await directory.links.add(0, linkTo(id, 'id:endless'));
      const forget = () => directory.links.forgetOld(NOW_MS + EXPIRED_KEPT_MS, 2);
      expect([await forget(), await forget(), await forget()]).toEqual([2, 1, 0]);
      const left = await directory.links.ofAccount(id, 0, 10);
      expect(left.map(({ itemId }) => itemId)).toEqual(['id:0', 'id:endless']);
    });
  });
}
