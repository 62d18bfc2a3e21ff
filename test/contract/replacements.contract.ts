import { describe, expect, test } from 'vitest';
import type { Relocation, Relocations } from '../../src/state/replacements.ts';
import { path } from '../support/paths.ts';

export function relocation(id: string, purpose: Relocation['purpose'] = 'replace'): Relocation {
  return { id, path: path('/Plans/x'), waitingAt: path('/Plans/.waiting'), purpose };
}

/** What every driver of `Relocations` holds to; `open` gives an empty store. */
export function relocationsContract(driver: string, open: () => Promise<Relocations>): void {
  describe(`relocations in ${driver}`, () => {
    test('those that were noted and not crossed out are told as they were given', async () => {
      const relocations = await open();
      expect(await relocations.all()).toEqual([]);
      for (const id of ['1', '2', '3']) await relocations.note(relocation(id));
      await relocations.note(relocation('3', 'rename'));
      await relocations.note({ ...relocation('2'), replacement: 'id:New' });
      await relocations.crossOut('1');
      await relocations.crossOut('none');
      const all = [...(await relocations.all())].sort((a, b) => a.id.localeCompare(b.id));
      expect(all).toEqual([{ ...relocation('2'), replacement: 'id:New' }, relocation('3', 'rename')]);
    });
  });
}
