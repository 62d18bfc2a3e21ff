import { expect, onTestFinished, test } from 'vitest';
import type { State } from '../../src/state/state.ts';

/** Tests the secrets of an implementation of `State`. `reopen` opens the same state at each call of one test. */
export function secretContract(driver: string, reopen: () => () => Promise<State>): void {
  test(`the secret of a drive in ${driver} has 32 bytes, is the same in the reopened state, and no other drive has it`, async () => {
    const open = reopen();
    const first = await open();
    const secret = Buffer.from(await first.drive('d').secret()).toString('hex');
    await first.close();
    const again = await open();
    onTestFinished(() => again.close());
    expect(secret).toHaveLength(64);
    expect(Buffer.from(await again.drive('d').secret()).toString('hex')).toBe(secret);
    expect(Buffer.from(await again.drive('e').secret()).toString('hex')).not.toBe(secret);
  });
}
