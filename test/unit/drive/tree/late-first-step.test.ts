import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Path, ROOT } from '../../../../src/util/path.ts';
import { MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

// A MOVE or COPY onto an existing file whose first step at the service has no answer: it may still be carried out.

let drive: MemoryDrive;
let remote: MemoryRemote;

beforeEach(async () => {
  remote = new MemoryRemote();
  remote.putFile(at('/new'), 'new');
  remote.putFile(at('/old'), 'old');
  drive = await MemoryDrive.open(remote);
  await drive.files.list(ROOT);
});

afterEach(() => drive.close());

const replacementCount = async () => (await drive.state.replacements.all()).length;

describe.each(['move', 'copy'] as const)('%s', (kind) => {
  const left = kind === 'move' ? ['/old'] : ['/new', '/old'];
  const over = () =>
    kind === 'move'
      ? drive.files.move(at('/new'), at('/old'), { overwrite: true })
      : drive.files.copy(at('/new'), at('/old'), { overwrite: true, shallow: false });

  /**
   * Loses the answer to the first step, and with `andLookup` to the lookup after it. Returns the path to which the service may
   * still move the old file.
   */
  async function loseFirstStep({ andLookup = false } = {}): Promise<Path> {
    remote.failNext('move', 'offline');
    if (andLookup) remote.failNext('stat', 'offline');
    await expect(over()).rejects.toMatchObject({ fault: 'offline' });
    const looked = remote.calls.findLast(({ call }) => call === 'stat');
    return at(looked?.path ?? '/none');
  }

  test.each([
    ['that move', false],
    ['that move and to the lookup after it', true],
  ])(
    'an old file that the service moves aside after the answer to %s was lost is back at once',
    async (_, andLookup) => {
      const waitingAt = await loseFirstStep({ andLookup });
      expect(await drive.text(at('/old'))).toBe('old');
      expect(await replacementCount()).toBe(0);
      remote.rename(at('/old'), waitingAt);
      expect(await drive.text(at('/old'))).toBe('old');
      expect(await drive.names(ROOT)).toEqual(['new', 'old']);
      expect(remote.paths).toEqual(['/new', '/old']);
    },
  );

  test('an old file that the service has not moved aside ten minutes after a lost answer is not looked for any more', async () => {
    await loseFirstStep();
    await drive.clock.advance(10_000);
    await turn(5);
    const before = remote.count('stat');
    for (let passedMs = 10_000; passedMs <= 600_000; passedMs += 10_000) {
      await drive.clock.advance(10_000);
      await turn(5);
    }
    const after = remote.count('stat');
    expect(after).toBeGreaterThan(before + 10);
    await drive.names(ROOT);
    await drive.clock.advance(60_000);
    await turn(5);
    expect(remote.count('stat')).toBe(after);
    expect(remote.paths).toEqual(['/new', '/old']);
  });

  test('while the service is away after a lost answer, what is cached is shown', async () => {
    await loseFirstStep();
    await drive.names(ROOT);
    await turn(10);
    remote.goAway('offline');
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    expect(await drive.files.stat(at('/old'))).toMatchObject({ path: '/old' });
  });

  test('a MOVE or COPY is repeated after its first step was lost, also when the service carries that out later', async () => {
    const waitingAt = await loseFirstStep();
    await over();
    expect(await drive.text(at('/old'))).toBe('new');
    remote.rename(at('/old'), waitingAt);
    expect(await drive.text(at('/old'))).toBe('new');
    expect(remote.paths).toEqual(left);
    expect(await replacementCount()).toBe(0);
  });
});
