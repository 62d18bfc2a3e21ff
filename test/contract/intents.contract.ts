import { describe, expect, test } from 'vitest';
import type { Intent, Intents } from '../../src/state/intents.ts';
import { path } from '../support/paths.ts';
import { property } from './properties.contract.ts';

export function intent(id: string, text = 'ä &lt; 😀'): Intent {
  return {
    id,
    kind: 'copy',
    from: path('/Plans'),
    to: path('/Copy of Plans'),
    outcome: { kind: 'folder', otherIds: ['id:Plans'] },
    takesLocalFiles: false,
    kept: [
      { path: path('/Copy of Plans'), kind: 'folder', properties: [property('a', text)] },
      { path: path('/Copy of Plans/x'), kind: 'file', contentHash: 'cafe', properties: [], modifiedMs: -1 },
    ],
  };
}

/** What every driver of `Intents` holds to; `open` gives an empty store. */
export function intentsContract(driver: string, open: () => Promise<Intents>): void {
  describe(`intents in ${driver}`, () => {
    test('an intent is told as it was noted until it is crossed out, and others stay', async () => {
      const intents = await open();
      expect(await intents.ids()).toEqual([]);
      for (const id of ['1', '2', '3', '4']) await intents.note(intent(id));
      await intents.remove(['1', '3', 'none']);
      await intents.remove([]);
      expect([...(await intents.ids())].sort()).toEqual(['2', '4']);
      expect(await intents.get('2')).toEqual(intent('2'));
      expect(await intents.get('1')).toBeUndefined();
    });

    test('an intent with a megabyte of properties is told as it was noted', async () => {
      const intents = await open();
      const large = intent('large', 'x'.repeat(1_048_576));
      await intents.note(large);
      expect(await intents.get('large')).toEqual(large);
    });
  });
}
