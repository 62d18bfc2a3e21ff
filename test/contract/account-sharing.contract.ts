import { describe, expect, test } from 'vitest';
import type { State } from '../../src/state/state.ts';
import { eventually } from '../support/eventually.ts';

/** Tests what gateways share of an account; `openTwo` returns the states of two gateways. */
export function accountSharingContract(
  driver: string,
  openTwo: () => Promise<readonly [State, State]>,
): void {
  let accounts = 0;
  const openShared = async () => {
    const id = `dbid:${++accounts}`;
    return (await openTwo()).map(({ budget, commitTurns }) => {
      if (!budget || !commitTurns) throw new Error(`${driver} shares no accounts`);
      return { budget: budget(id), turns: commitTurns(`${id} home`) };
    });
  };

  describe(`accounts shared in ${driver}`, () => {
    test('a pause and what was learned about parallel commits are known at the other gateway', async () => {
      const [one, other] = await openShared();
      await one?.budget.pause(3_600_000);
      expect(await one?.budget.chooseTrier()).toBe(true);
      await one?.budget.learned('refused');
      expect(await other?.budget.take(1)).toMatchObject({ calls: 0, parallelCommits: 'refused' });
      await other?.budget.resume();
      expect(await one?.budget.take(1)).toMatchObject({ calls: 1, pausedMs: 0 });
    });

    test('a batch of one gateway is taken with the turn of the other one, which answers it', async () => {
      const [one, other] = await openShared();
      const asked = { kind: 'commit', isGathering: false, isRepeated: false };
      expect(await one?.turns.enter({ ...asked, id: 'a', entries: [] })).toEqual({
        is: 'granted',
        offers: [],
      });
      const b = { ...asked, id: 'b', entries: ['1'] };
      const c = { ...asked, id: 'c', entries: ['2', '3'] };
      expect(await one?.turns.enter(b)).toMatchObject({ is: 'waiting' });
      expect(await other?.turns.enter(c)).toMatchObject({ is: 'waiting' });
      await one?.turns.renew('a');
      await one?.turns.leave('a', []);
      let answer = await one?.turns.enter({ ...b, isRepeated: true });
      await eventually(async () => {
        // It would lose its place if it asked no more.
        if (answer?.is === 'waiting') await other?.turns.enter({ ...c, isRepeated: true });
        if (answer?.is === 'waiting') answer = await one?.turns.enter({ ...b, isRepeated: true });
        expect(answer).toEqual({ is: 'granted', offers: [{ id: 'c', entries: ['2', '3'] }] });
      }, 5);
      await one?.turns.leave('b', [{ id: 'c', text: 'done' }]);
      expect(await other?.turns.enter({ ...c, isRepeated: true })).toEqual({ is: 'answered', text: 'done' });
    });
  });
}
