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

  /** Loses the answer to the first step. Returns the path to which the service may still move the old file. */
  async function loseFirstStep(): Promise<Path> {
    remote.failNext('move', 'offline');
    await expect(over()).rejects.toMatchObject({ fault: 'offline' });
    const [noted] = await drive.state.replacements.all();
    if (!noted) throw new Error('the replacement is not noted any more');
    return noted.waitingAt;
  }

  test('an old file that the service moves aside after davgate has given up is back at once', async () => {
    const waitingAt = await loseFirstStep();
    expect(await drive.text(at('/old'))).toBe('old');
    remote.rename(at('/old'), waitingAt);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await replacementCount()).toBe(0);
  });

  test('an old file that the service has not moved aside ten minutes after a lost answer is not looked for any more', async () => {
    await loseFirstStep();
    for (let passedMs = 0; passedMs < 600_000; passedMs += 10_000) {
      expect(await replacementCount()).toBe(1);
      await drive.clock.advance(10_000);
      await turn(5);
    }
    expect(await replacementCount()).toBe(0);
    expect(remote.paths).toEqual(['/new', '/old']);
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
