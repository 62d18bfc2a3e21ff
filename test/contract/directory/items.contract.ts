import { describe, expect, test } from 'vitest';
import { REFERENCE_LIFETIME_MS } from '../../../src/service/directory/copy-references.ts';
import type { Directory } from '../../../src/service/directory/directory.ts';
import { TAGS_MAX } from '../../../src/service/directory/tags.ts';
import { addAccount, NOW_MS, type OpenTwice, raceOfAll } from './directory-under-test.ts';

/** Tests an implementation of `Tags`, `CopyReferences` and `ItemRows`. */
export function itemsContract(driver: string, open: OpenTwice): void {
  const openWithAccount = async () => {
    const opened = await open();
    return { ...opened, opened, id: (await addAccount(opened.directory)).id };
  };

  describe(`the tags in ${driver}`, () => {
    test('tags are returned by item in the order in which they were added', async () => {
      const { directory, other, id } = await openWithAccount();
      for (const tag of ['zebra', 'ant', 'Ant'])
        expect(await directory.tags.add(id, 'id:1', tag)).toBe('added');
      await other.tags.add(id, 'id:2', 'ant');
      const items = ['id:2', 'id:none', 'id:1', 'id:2'];
      expect(await other.tags.of(id, items)).toEqual([['ant'], [], ['zebra', 'ant', 'Ant'], ['ant']]);
      expect(await other.tags.of('dbid:other', ['id:1'])).toEqual([[]]);
      expect(await other.tags.of(id, [])).toEqual([]);
    });

    test('a tag that is added again keeps its place, and is removed once', async () => {
      const { directory, other, id } = await openWithAccount();
      for (const tag of ['a', 'b', 'a']) await directory.tags.add(id, 'id:1', tag);
      expect(await other.tags.of(id, ['id:1'])).toEqual([['a', 'b']]);
      expect(await other.tags.remove(id, 'id:1', 'a')).toBe(true);
      expect(await directory.tags.remove(id, 'id:1', 'a')).toBe(false);
      expect(await directory.tags.of(id, ['id:1'])).toEqual([['b']]);
    });

    test('an item with the maximum of tags gets no further one, and may be given one again', async () => {
      const { directory, id } = await openWithAccount();
      for (let index = 0; index < TAGS_MAX; index += 1) await directory.tags.add(id, 'id:1', `tag_${index}`);
      expect(await directory.tags.add(id, 'id:1', 'one_more')).toBe('too-many');
      expect(await directory.tags.add(id, 'id:1', 'tag_0')).toBe('added');
      expect(await directory.tags.add(id, 'id:2', 'one_more')).toBe('added');
    });

    test('concurrent calls add no more than the maximum of tags', async () => {
      const { opened, directory, id } = await openWithAccount();
      for (let index = 0; index < TAGS_MAX - 4; index += 1)
        await directory.tags.add(id, 'id:1', `old_${index}`);
      const added = await raceOfAll(opened, ({ tags }, index) => tags.add(id, 'id:1', `new_${index}`));
      expect(added.filter((one) => one === 'added')).toHaveLength(4);
      expect((await directory.tags.of(id, ['id:1']))[0]).toHaveLength(TAGS_MAX);
    });

    test('concurrent calls that add one tag all succeed, and the item has it once', async () => {
      const { opened, directory, id } = await openWithAccount();
      const added = await raceOfAll(opened, ({ tags }) => tags.add(id, 'id:1', 'same'));
      expect(new Set(added)).toEqual(new Set(['added']));
      expect(await directory.tags.of(id, ['id:1'])).toEqual([['same']]);
    });
  });

  describe(`the copy references in ${driver}`, () => {
    test('an item has one reference, and each call restarts its lifetime', async () => {
      const { directory, other, id } = await openWithAccount();
      const first = await directory.copyReferences.ofItem(NOW_MS, id, 'id:1');
      const expiresMs = NOW_MS + REFERENCE_LIFETIME_MS;
      expect(first).toEqual({ reference: first.reference, accountId: id, itemId: 'id:1', expiresMs });
      const second = await other.copyReferences.ofItem(NOW_MS + 5, id, 'id:1');
      expect(second).toEqual({ ...first, expiresMs: expiresMs + 5 });
      expect(await directory.copyReferences.find(NOW_MS, first.reference)).toEqual(second);
    });

    test('an expired or unknown reference is not found', async () => {
      const { directory, id } = await openWithAccount();
      const { reference } = await directory.copyReferences.ofItem(NOW_MS, id, 'id:1');
      const { copyReferences } = directory;
      expect(await copyReferences.find(NOW_MS + REFERENCE_LIFETIME_MS, reference)).toBeUndefined();
      expect(await copyReferences.find(NOW_MS, 'unknown')).toBeUndefined();
      expect(await copyReferences.find(NOW_MS, `${reference}\0`)).toBeUndefined();
    });

    test('concurrent calls for one item get the same reference', async () => {
      const { opened, id } = await openWithAccount();
      const made = await raceOfAll(opened, ({ copyReferences }) => copyReferences.ofItem(NOW_MS, id, 'id:1'));
      expect(new Set(made.map(({ reference }) => reference)).size).toBe(1);
    });
  });

  describe(`the rows of items in ${driver}`, () => {
    test('links, tags and copy references of all accounts are listed page by page, oldest first', async () => {
      const { directory, other, id } = await openWithAccount();
      const bob = (await addAccount(directory, 'b@x')).id;
      const owners = [bob, id, id] as const;
      for (const [index, account] of owners.entries()) await addRows(directory, account, `id:${index}`);
      for (const rows of other.itemRows) {
        const first = await rows.all(0, 2);
        const second = await rows.all(first[1]?.sequence ?? 0, 2);
        const listed = [...first, ...second].map(({ accountId, itemId }) => [accountId, itemId]);
        expect(listed).toEqual(owners.map((account, index) => [account, `id:${index}`]));
      }
    });

    test('a forgotten row is gone, and no other', async () => {
      const { directory, other, id } = await openWithAccount();
      for (const itemId of ['id:0', 'id:1']) await addRows(directory, id, itemId);
      for (const rows of other.itemRows) {
        const [first] = await rows.all(0, 1);
        if (!first) throw new Error('there is no row');
        await rows.forget(first);
        expect((await rows.all(0, 10)).map(({ itemId }) => itemId)).toEqual(['id:1']);
      }
      expect(await directory.tags.of(id, ['id:0', 'id:1'])).toEqual([[], ['tag']]);
      expect((await directory.links.ofItems(id, ['id:0', 'id:1'])).map(({ itemId }) => itemId)).toEqual([
        'id:1',
      ]);
    });
  });
}

/** Adds a link, a tag and a copy reference to an item. */
async function addRows(
  { links, tags, copyReferences }: Directory,
  accountId: string,
  itemId: string,
): Promise<void> {
  await links.add(NOW_MS, { accountId, itemId, itemKind: 'file', visibility: 'public', allowDownload: true });
  await tags.add(accountId, itemId, 'tag');
  await copyReferences.ofItem(NOW_MS, accountId, itemId);
}
