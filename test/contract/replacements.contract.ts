import { describe, expect, test } from 'vitest';
import type { Replacement, Replacements } from '../../src/state/replacements.ts';
import { path } from '../support/paths.ts';

export function relocation(id: string, purpose: Replacement['purpose'] = 'replace'): Replacement {
  return { id, path: path('/Plans/x'), waitingAt: path('/Plans/.waiting'), purpose };
}

/** What every driver of `Replacements` holds to; `open` gives an empty store. */
export function replacementsContract(driver: string, open: () => Promise<Replacements>): void {
  describe(`relocations in ${driver}`, () => {
    test('those that were noted and not crossed out are told as they were given', async () => {
      const replacements = await open();
      expect(await replacements.all()).toEqual([]);
      for (const id of ['1', '2', '3']) await replacements.note(relocation(id));
      await replacements.note(relocation('3', 'rename'));
      await replacements.note({ ...relocation('2'), replacement: 'id:New' });
      await replacements.remove('1');
      await replacements.remove('none');
      const all = [...(await replacements.all())].sort((a, b) => a.id.localeCompare(b.id));
      expect(all).toEqual([{ ...relocation('2'), replacement: 'id:New' }, relocation('3', 'rename')]);
    });
  });
}
