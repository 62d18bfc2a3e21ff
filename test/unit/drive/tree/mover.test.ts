import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ROOT } from '../../../../src/util/path.ts';
import { bodyOf, MemoryDrive, turn } from '../../../support/memory-drive.ts';
import { at, MemoryRemote } from '../../../support/memory-remote.ts';

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

const moveOver = () => drive.files.move(at('/new'), at('/old'), { overwrite: true });
const copyOver = () => drive.files.copy(at('/new'), at('/old'), { overwrite: true, shallow: false });

async function replacementCount(): Promise<number> {
  return (await drive.state.replacements.all()).length;
}

describe.each([
  ['move', moveOver],
  ['copy', copyOver],
] as const)('a %s onto an existing file', (kind, over) => {
  const left = kind === 'move' ? ['/old'] : ['/new', '/old'];

  test('a MOVE or COPY onto an existing file replaces it, keeps it in the trash and leaves no replacement record', async () => {
    expect(await over()).toMatchObject({ created: false, entry: { path: '/old' } });
    expect(remote.paths).toEqual(left);
    expect(remote.text(at('/old'))).toBe('new');
    expect(remote.trash).toHaveLength(1);
    expect(await replacementCount()).toBe(0);
  });

  test('a MOVE or COPY onto an existing file shows the old or the new file at every step, and no temporary name', async () => {
    const look = async () => {
      await turn(10);
      expect(await drive.text(at('/old'))).toBe('old');
      expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    };
    const aside = remote.holdNext('move', 'end');
    const over_ = over();
    await aside.reached;
    await look();
    const begun = remote.holdNext(kind, 'begin');
    aside.release();
    await begun.reached;
    await look();
    const placed = remote.holdNext(kind, 'end');
    begun.release();
    await placed.reached;
    await look();
    placed.release();
    await over_;
    expect(await drive.text(at('/old'))).toBe('new');
    await turn(10);
    expect(await drive.names(ROOT)).toEqual(left.map((path) => path.slice(1)));
  });

  /** Waits until the old file has been moved aside, then lets the next calls fail. */
  async function failAfterStep(...failures: Parameters<typeof remote.failNext>[]): Promise<unknown> {
    const aside = remote.holdNext('move', 'end');
    const done = over();
    await aside.reached;
    for (const failure of failures) remote.failNext(...failure);
    aside.release();
    return done;
  }

  test('a MOVE or COPY refused by the service after the old file was moved aside restores the old file', async () => {
    await expect(failAfterStep([kind, 'insufficient-space'])).rejects.toMatchObject({ fault: 'no-space' });
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await replacementCount()).toBe(0);
    expect(remote.trash).toEqual([]);
  });

  test('a MOVE or COPY whose old target cannot be moved aside fails with forbidden and changes nothing', async () => {
    remote.failNext('move', 'no-permission');
    await expect(over()).rejects.toMatchObject({ fault: 'forbidden' });
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await replacementCount()).toBe(0);
  });

  test('a MOVE or COPY whose answer was lost succeeds and has replaced the old file', async () => {
    expect(await failAfterStep([kind, 'offline', { late: true }])).toMatchObject({ created: false });
    expect(remote.paths).toEqual(left);
    expect(await drive.text(at('/old'))).toBe('new');
    expect(await replacementCount()).toBe(0);
  });

  /** Fails the operation and also the immediate restore of the old file. */
  async function failBothWays(): Promise<void> {
    const failing = failAfterStep(
      [kind, 'insufficient-space'],
      ['move', 'offline'],
      ['stat', 'offline'],
      ['stat', 'offline'],
    );
    await expect(failing).rejects.toMatchObject({ fault: 'no-space' });
  }

  test('a failed MOVE or COPY that cannot restore the old file at once restores it later', async () => {
    await failBothWays();
    expect(remote.text(at('/old'))).toBeUndefined();
    while ((await replacementCount()) > 0) {
      await drive.clock.advance(10_000);
      await turn();
    }
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(remote.text(at('/old'))).toBe('old');
    await turn(10);
    expect(await drive.text(at('/old'))).toBe('old');
  });

  test('until the old file of a failed MOVE or COPY is restored, its path answers offline and is never empty', async () => {
    await failBothWays();
    await turn(10);
    const looks = [
      () => drive.files.stat(at('/old')),
      () => drive.files.list(ROOT),
      () => drive.write(at('/old'), 'newer'),
      () => drive.files.remove(at('/old'), { recoverable: false }),
    ];
    for (const look of looks) {
      remote.failNext('stat', 'offline');
      await expect(look()).rejects.toMatchObject({ fault: 'offline' });
    }
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await replacementCount()).toBe(0);
    expect(remote.paths).toEqual(['/new', '/old']);
  });

  test('an old file that is still to be restored moves with its folder', async () => {
    remote.putFolder(at('/folder'));
    remote.putFile(at('/folder/old'), 'old');
    await turn(10);
    const aside = remote.holdNext('move', 'end');
    const to = at('/folder/old');
    const failing =
      kind === 'move'
        ? drive.files.move(at('/new'), to, { overwrite: true })
        : drive.files.copy(at('/new'), to, { overwrite: true, shallow: false });
    await aside.reached;
    remote.failNext(kind, 'insufficient-space');
    remote.failNext('move', 'offline');
    remote.failNext('stat', 'offline');
    remote.failNext('stat', 'offline');
    aside.release();
    await expect(failing).rejects.toMatchObject({ fault: 'no-space' });
    await turn(10);
    await drive.files.move(at('/folder'), at('/moved'), { overwrite: false });
    expect(remote.text(at('/moved/old'))).toBe('old');
    expect(await replacementCount()).toBe(0);
  });

  test('a MOVE or COPY that cannot discard the old file succeeds and discards it later', async () => {
    remote.failNext('remove', 'offline');
    await over();
    expect(await drive.names(ROOT)).toEqual(left.map((path) => path.slice(1)));
    while ((await replacementCount()) > 0) {
      await drive.clock.advance(10_000);
      await turn();
    }
    expect(remote.paths).toEqual(left);
    expect(remote.trash).toHaveLength(1);
  });

  test.each(['file', 'folder'])(
    'a MOVE or COPY of a %s whose answer is lost in an outage has replaced the old file and leaves no second copy',
    async (what) => {
      if (what === 'folder') {
        await drive.files.remove(at('/new'), { recoverable: false });
        await drive.files.createFolder(at('/new'));
      }
      const trashed = remote.trash.length;
      const aside = remote.holdNext('move', 'end');
      const done = over();
      await aside.reached;
      remote.failNext(kind, 'offline', { late: true });
      remote.failNext('move', 'offline');
      remote.failNext('stat', 'offline');
      remote.failNext('stat', 'offline');
      aside.release();
      await expect(done).rejects.toMatchObject({ fault: 'offline' });
      while ((await replacementCount()) > 0) {
        await drive.clock.advance(10_000);
        await turn();
      }
      expect(remote.paths).toEqual(left);
      expect(remote.trash).toHaveLength(trashed + 1);
    },
  );

  test('a MOVE or COPY whose target is taken elsewhere meanwhile keeps the old file under a numbered name beside it', async () => {
    const aside = remote.holdNext('move', 'end');
    const done = over();
    await aside.reached;
    remote.rename(at('/new'), at('/elsewhere'));
    remote.putFile(at('/old'), 'theirs');
    aside.release();
    await expect(done).rejects.toMatchObject({ fault: expect.stringMatching('not-found|exists') });
    while ((await replacementCount()) > 0) await turn();
    expect(remote.paths).toEqual(['/elsewhere', '/old', '/old (1)']);
    expect([remote.text(at('/old')), remote.text(at('/old (1)'))]).toEqual(['theirs', 'old']);
    expect(remote.trash).toEqual([]);
  });

  test('a MOVE or COPY also replaces a file that appeared at its target a moment ago', async () => {
    await drive.files.remove(at('/old'), { recoverable: true });
    remote.holdFeed();
    remote.putFile(at('/old'), 'theirs');
    expect(await over()).toMatchObject({ created: false });
    expect(remote.text(at('/old'))).toBe('new');
    expect(remote.paths).toEqual(left);
  });

  test('a MOVE or COPY succeeds when the local files cannot follow', async () => {
    vi.spyOn(drive.state.localFiles, kind).mockRejectedValue(new Error('the disk is full'));
    expect(await over()).toMatchObject({ created: false });
    expect(remote.paths).toEqual(left);
    expect(await drive.text(at('/old'))).toBe('new');
  });

  test('a MOVE or COPY deletes the properties of the replaced file and no others', async () => {
    const old = (await drive.files.stat(at('/old')))?.id ?? '';
    const { id } = (await drive.files.stat(at('/new'))) ?? { id: '' };
    const set = { set: { namespace: 'n', name: 'p', xml: '<p/>' } };
    await drive.state.properties.change(old, [set]);
    await drive.state.properties.change(id, [set]);
    const { entry } = await over();
    const known = await drive.state.properties.of([old, entry.id]);
    expect([...known.keys()]).toEqual([entry.id]);
  });
});

describe('a MOVE or COPY interrupted by a kill', () => {
  async function killAt(step: 'noted' | 'aside' | 'placed'): Promise<void> {
    const call = { noted: 'move', aside: 'move', placed: 'remove' } as const;
    const gate = remote.holdNext(call[step], step === 'aside' ? 'end' : 'begin');
    void moveOver().catch(() => {});
    await gate.reached;
    drive.kill();
    await drive.start();
    while ((await replacementCount()) > 0) await turn();
    await turn(5);
  }

  test('a MOVE killed before the old file was moved aside has changed nothing after the restart', async () => {
    await killAt('noted');
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
  });

  test('a MOVE killed after the old file was moved aside restores it after the restart', async () => {
    await killAt('aside');
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
  });

  test('a MOVE killed after the new file was placed moves the old file to the trash after the restart', async () => {
    await killAt('placed');
    expect(remote.paths).toEqual(['/old']);
    expect(await drive.text(at('/old'))).toBe('new');
    expect(remote.trash).toHaveLength(1);
  });

  test('a killed COPY whose source was moved to its target elsewhere keeps the old target beside it', async () => {
    const gate = remote.holdNext('move', 'end');
    void copyOver().catch(() => {});
    await gate.reached;
    drive.kill();
    remote.rename(at('/new'), at('/old'));
    await drive.start();
    while ((await replacementCount()) > 0) await turn();
    expect(remote.paths).toEqual(['/old', '/old (1)']);
    expect(remote.text(at('/old (1)'))).toBe('old');
    expect(remote.trash).toEqual([]);
  });

  test('a COPY killed after the copy was made moves the old target to the trash after the restart', async () => {
    const gate = remote.holdNext('remove', 'begin');
    void copyOver().catch(() => {});
    await gate.reached;
    drive.kill();
    await drive.start();
    while ((await replacementCount()) > 0) await turn();
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(remote.text(at('/old'))).toBe('new');
    expect(remote.trash).toHaveLength(1);
  });

  test('a change of letter case interrupted by a kill is completed after the restart', async () => {
    const gate = remote.holdNext('move', 'end');
    void drive.files.move(at('/old'), at('/OLD'), { overwrite: false }).catch(() => {});
    await gate.reached;
    drive.kill();
    await drive.start();
    while ((await replacementCount()) > 0) await turn();
    expect(remote.paths).toEqual(['/OLD', '/new']);
  });

  test('a change of letter case interrupted by a kill keeps both files when the name was taken elsewhere meanwhile', async () => {
    const gate = remote.holdNext('move', 'end');
    void drive.files.move(at('/old'), at('/OLD'), { overwrite: false }).catch(() => {});
    await gate.reached;
    drive.kill();
    remote.putFile(at('/old'), 'theirs');
    await drive.start();
    while ((await replacementCount()) > 0) await turn();
    expect(remote.paths).toEqual(['/OLD (1)', '/new', '/old']);
    expect(remote.text(at('/OLD (1)'))).toBe('old');
  });
});

describe('a change of letter case', () => {
  test('a change of letter case that fails half-way restores the old name', async () => {
    const gate = remote.holdNext('move', 'end');
    const moving = drive.files.move(at('/old'), at('/OLD'), { overwrite: false });
    await gate.reached;
    remote.failNext('move', 'no-permission');
    gate.release();
    await expect(moving).rejects.toMatchObject({ fault: 'forbidden' });
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await replacementCount()).toBe(0);
  });

  test('a change of letter case to the current case makes no call', async () => {
    const before = remote.questions;
    expect(await drive.files.move(at('/OLD'), at('/old'), { overwrite: true })).toMatchObject({
      created: false,
    });
    expect(remote.questions).toBe(before);
  });
});

describe('temporary names', () => {
  const waiting = at('/.davgate-waiting-1');

  test('temporary names are hidden from stat, listings and walks', async () => {
    remote.putFile(waiting, 'x');
    await turn(10);
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    expect(await drive.files.stat(waiting)).toBeUndefined();
    await drive.close();
    drive = await MemoryDrive.open(remote);
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    for await (const { children } of drive.files.walk(ROOT)) expect(children).toHaveLength(2);
  });

  test('temporary names are refused for new files, folders and targets, and cannot be deleted', async () => {
    await expect(drive.write(waiting, 'x')).rejects.toMatchObject({ fault: 'bad-name' });
    await expect(drive.files.createFolder(waiting)).rejects.toMatchObject({ fault: 'bad-name' });
    await expect(drive.files.move(at('/new'), waiting, { overwrite: true })).rejects.toMatchObject({
      fault: 'bad-name',
    });
    await expect(drive.files.remove(waiting, { recoverable: false })).rejects.toMatchObject({
      fault: 'not-found',
    });
  });
});

test('a COPY of a folder in which a file is being replaced copies no hidden entry', async () => {
  await drive.files.createFolder(at('/d'));
  await drive.files.move(at('/old'), at('/d/old'), { overwrite: false });
  const discarding = remote.holdNext('remove', 'begin');
  const replaced = drive.files.move(at('/new'), at('/d/old'), { overwrite: true });
  await discarding.reached;
  const copied = drive.files.copy(at('/d'), at('/e'), { overwrite: false, shallow: false });
  await turn(10);
  discarding.release();
  await Promise.all([replaced, copied]);
  expect(remote.paths).toEqual(['/d', '/d/old', '/e', '/e/old']);
});

test('MOVE onto a placeholder replaces it only with overwrite, and the placeholder is never committed', async () => {
  await drive.files.write(at('/held'), bodyOf(), { mode: { if: 'any' } });
  const move = (overwrite: boolean) => drive.files.move(at('/new'), at('/held'), { overwrite });
  await expect(move(false)).rejects.toMatchObject({ fault: 'exists' });
  expect(await move(true)).toMatchObject({ created: false });
  await drive.clock.advance(60_000);
  expect(remote.paths).toEqual(['/held', '/old']);
  expect(remote.count('write')).toBe(0);
});
