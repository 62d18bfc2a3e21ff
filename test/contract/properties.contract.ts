import { describe, expect, test } from 'vitest';
import {
  type DeadProperties,
  type DeadProperty,
  PROPERTIES_BYTES_MAX,
  PropertiesFull,
} from '../../src/state/properties.ts';

export function property(name: string, text = 'x', namespace = 'urn:test'): DeadProperty {
  return { namespace, name, xml: `<t:${name} xmlns:t="${namespace}">${text}</t:${name}>` };
}

/** Tests an implementation of `DeadProperties`; `open` returns an empty store. */
export function propertiesContract(driver: string, open: () => Promise<DeadProperties>): void {
  describe(`dead properties in ${driver}`, () => {
    test('properties are returned unchanged, and only for ids that have any', async () => {
      const properties = await open();
      const [a, b] = [property('a', 'ä &lt; 😀'), property('b', '', '')];
      await properties.change('id:1', [{ set: a }, { set: b }]);
      const found = await properties.of(['id:1', 'id:2']);
      expect([...found.keys()]).toEqual(['id:1']);
      expect(found.get('id:1')).toEqual([a, b]);
    });

    test('ids that differ only in letter case have separate properties', async () => {
      const properties = await open();
      await properties.change('id:a', [{ set: property('lower') }]);
      await properties.change('id:A', [{ set: property('upper') }]);
      const found = await properties.of(['id:A', 'id:a']);
      expect(found.get('id:a')).toEqual([property('lower')]);
      expect(found.get('id:A')).toEqual([property('upper')]);
    });

    test('properties are distinguished by namespace and by the letter case of their names', async () => {
      const properties = await open();
      const all = [property('n', '1', 'urn:a'), property('n', '2', 'urn:b'), property('N', '3', 'urn:a')];
      await properties.change(
        'id:1',
        all.map((set) => ({ set })),
      );
      expect((await properties.of(['id:1'])).get('id:1')).toEqual(expect.arrayContaining(all));
      await properties.change('id:1', [{ remove: { namespace: 'urn:a', name: 'n' } }]);
      expect((await properties.of(['id:1'])).get('id:1')).toEqual(all.slice(1));
    });

    test('changes of one id apply in order', async () => {
      const properties = await open();
      await properties.change('id:1', [
        { set: property('a', '1') },
        { remove: { namespace: 'urn:test', name: 'a' } },
        { set: property('a', '2') },
        { set: property('a', '3') },
        { remove: { namespace: 'urn:test', name: 'none' } },
      ]);
      expect((await properties.of(['id:1'])).get('id:1')).toEqual([property('a', '3')]);
      await properties.change('id:1', [{ remove: { namespace: 'urn:test', name: 'a' } }]);
      expect(await properties.of(['id:1'])).toEqual(new Map());
    });

    test('a change above the size limit is refused with PropertiesFull and changes nothing', async () => {
      const properties = await open();
      const kept = property('kept', 'x'.repeat(PROPERTIES_BYTES_MAX / 2));
      await properties.change('id:1', [{ set: kept }]);
      const version = await properties.version();
      const tooMuch = property('more', 'ä'.repeat(PROPERTIES_BYTES_MAX / 4));
      const change = properties.change('id:1', [
        { remove: { namespace: 'urn:test', name: 'none' } },
        { set: property('small') },
        { set: tooMuch },
      ]);
      await expect(change).rejects.toThrow(PropertiesFull);
      expect((await properties.of(['id:1'])).get('id:1')).toEqual([kept]);
      expect(await properties.version()).toBe(version);
      await properties.change('id:1', [{ remove: kept }, { set: tooMuch }]);
      expect((await properties.of(['id:1'])).get('id:1')).toEqual([tooMuch]);
    });

    test('copy replaces the properties of the target, and is independent of its source', async () => {
      const properties = await open();
      await properties.change('id:from', [{ set: property('a') }]);
      await properties.change('id:to', [{ set: property('b') }]);
      await properties.copy('id:from', 'id:to');
      await properties.copy('id:from', 'id:from');
      await properties.change('id:from', [{ set: property('later') }]);
      expect((await properties.of(['id:to'])).get('id:to')).toEqual([property('a')]);
      await properties.copy('id:none', 'id:to');
      expect(await properties.of(['id:to'])).toEqual(new Map());
    });

    test('rename moves the properties to the new id, and can be repeated', async () => {
      const properties = await open();
      await properties.change('id:from', [{ set: property('a') }]);
      await properties.rename('id:from', 'id:to');
      await properties.rename('id:from', 'id:to');
      expect(await properties.of(['id:from', 'id:to'])).toEqual(new Map([['id:to', [property('a')]]]));
    });

    test('forget drops the properties of the given ids only', async () => {
      const properties = await open();
      for (const id of ['id:1', 'id:2', 'id:3']) await properties.change(id, [{ set: property('a') }]);
      await properties.forget(['id:1', 'id:3', 'id:none']);
      expect([...(await properties.of(['id:1', 'id:2', 'id:3'])).keys()]).toEqual(['id:2']);
      expect(await properties.ids()).toEqual(['id:2']);
    });

    test('a store is empty until a property is set, and after the last one is removed', async () => {
      const properties = await open();
      expect(await properties.isEmpty()).toBe(true);
      await properties.change('id:1', [{ set: property('a') }]);
      await properties.copy('id:1', 'id:2');
      await properties.forget(['id:1']);
      expect(await properties.isEmpty()).toBe(false);
      await properties.change('id:2', [{ remove: { namespace: 'urn:test', name: 'a' } }]);
      expect(await properties.isEmpty()).toBe(true);
    });

    test('each change increases the version of the properties, and reading does not', async () => {
      const properties = await open();
      const versions = [await properties.version()];
      const grownBy = async (change: Promise<void>) => {
        await change;
        versions.push(await properties.version());
      };
      await grownBy(properties.change('id:1', [{ set: property('a') }]));
      await grownBy(properties.copy('id:1', 'id:2'));
      await grownBy(properties.rename('id:2', 'id:3'));
      await grownBy(properties.forget(['id:1']));
      expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
      await properties.of(['id:3']);
      expect(await properties.version()).toBe(versions.at(-1));
    });

    test('50 concurrent changes of one id are all applied', async () => {
      const properties = await open();
      const names = Array.from({ length: 50 }, (_, index) => `n${index}`);
      await Promise.all(names.map((name) => properties.change('id:1', [{ set: property(name) }])));
      expect((await properties.of(['id:1'])).get('id:1')?.map(({ name }) => name)).toEqual(names);
    });
  });
}
