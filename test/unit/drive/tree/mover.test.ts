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

async function noted(): Promise<number> {
  return (await drive.state.replacements.all()).length;
}

describe.each([
  ['move', moveOver],
  ['copy', copyOver],
] as const)('a %s onto what is there', (kind, over) => {
  const left = kind === 'move' ? ['/old'] : ['/new', '/old'];

  test('replaces it; the old one can be recovered; nothing is left to do', async () => {
    expect(await over()).toMatchObject({ created: false, entry: { path: '/old' } });
    expect(remote.paths).toEqual(left);
    expect(remote.text(at('/old'))).toBe('new');
    expect(remote.trash).toHaveLength(1);
    expect(await noted()).toBe(0);
  });

  test('shows the old one or the new one, never nothing and never where the old one waits', async () => {
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

  /** Lets the old one step aside, and makes what comes then fail. */
  async function failAfterStep(...failures: Parameters<typeof remote.failNext>[]): Promise<unknown> {
    const aside = remote.holdNext('move', 'end');
    const done = over();
    await aside.reached;
    for (const failure of failures) remote.failNext(...failure);
    aside.release();
    return done;
  }

  test('that the service refuses changes nothing', async () => {
    await expect(failAfterStep([kind, 'insufficient-space'])).rejects.toMatchObject({ fault: 'no-space' });
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await noted()).toBe(0);
    expect(remote.trash).toEqual([]);
  });

  test('for which the old one may not step aside changes nothing', async () => {
    remote.failNext('move', 'no-permission');
    await expect(over()).rejects.toMatchObject({ fault: 'forbidden' });
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await noted()).toBe(0);
  });

  test('whose answer was lost has been done', async () => {
    expect(await failAfterStep([kind, 'offline', { late: true }])).toMatchObject({ created: false });
    expect(remote.paths).toEqual(left);
    expect(await drive.text(at('/old'))).toBe('new');
    expect(await noted()).toBe(0);
  });

  /** Neither does the new one come, nor can the old one be put back for now. */
  async function failBothWays(): Promise<void> {
    const failing = failAfterStep(
      [kind, 'insufficient-space'],
      ['move', 'offline'],
      ['stat', 'offline'],
      ['stat', 'offline'],
    );
    await expect(failing).rejects.toMatchObject({ fault: 'no-space' });
  }

  test('that cannot put the old one back at once does so later', async () => {
    await failBothWays();
    expect(remote.text(at('/old'))).toBeUndefined();
    while ((await noted()) > 0) {
      await drive.clock.advance(10_000);
      await turn();
    }
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(remote.text(at('/old'))).toBe('old');
    await turn(10);
    expect(await drive.text(at('/old'))).toBe('old');
  });

  test('that cannot put the old one back at once never shows nothing in its place', async () => {
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
    expect(await noted()).toBe(0);
    expect(remote.paths).toEqual(['/new', '/old']);
  });

  test('that cannot put the old one back at once takes it along when its folder moves', async () => {
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
    expect(await noted()).toBe(0);
  });

  test('that cannot discard the old one is done all the same, and discards it later', async () => {
    remote.failNext('remove', 'offline');
    await over();
    expect(await drive.names(ROOT)).toEqual(left.map((path) => path.slice(1)));
    while ((await noted()) > 0) {
      await drive.clock.advance(10_000);
      await turn();
    }
    expect(remote.paths).toEqual(left);
    expect(remote.trash).toHaveLength(1);
  });

  test.each(['file', 'folder'])(
    'of a %s whose answer is lost, with the service away for a while, has replaced the old one and leaves no second one',
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
      while ((await noted()) > 0) {
        await drive.clock.advance(10_000);
        await turn();
      }
      expect(remote.paths).toEqual(left);
      expect(remote.trash).toHaveLength(trashed + 1);
    },
  );

  test('whose place somebody else takes meanwhile keeps the old one beside it', async () => {
    const aside = remote.holdNext('move', 'end');
    const done = over();
    await aside.reached;
    remote.rename(at('/new'), at('/elsewhere'));
    remote.putFile(at('/old'), 'theirs');
    aside.release();
    await expect(done).rejects.toMatchObject({ fault: expect.stringMatching('not-found|exists') });
    while ((await noted()) > 0) await turn();
    expect(remote.paths).toEqual(['/elsewhere', '/old', '/old (1)']);
    expect([remote.text(at('/old')), remote.text(at('/old (1)'))]).toEqual(['theirs', 'old']);
    expect(remote.trash).toEqual([]);
  });

  test('something that came there meanwhile is replaced too', async () => {
    await drive.files.remove(at('/old'), { recoverable: true });
    remote.holdFeed();
    remote.putFile(at('/old'), 'theirs');
    expect(await over()).toMatchObject({ created: false });
    expect(remote.text(at('/old'))).toBe('new');
    expect(remote.paths).toEqual(left);
  });

  test('that is done answers so when what is kept on this machine cannot follow', async () => {
    vi.spyOn(drive.state.localFiles, kind).mockRejectedValue(new Error('the disk is full'));
    expect(await over()).toMatchObject({ created: false });
    expect(remote.paths).toEqual(left);
    expect(await drive.text(at('/old'))).toBe('new');
  });

  test('forgets what was kept for the old one, and only that', async () => {
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

describe('after a kill', () => {
  async function killAt(step: 'noted' | 'aside' | 'placed'): Promise<void> {
    const call = { noted: 'move', aside: 'move', placed: 'remove' } as const;
    const gate = remote.holdNext(call[step], step === 'aside' ? 'end' : 'begin');
    void moveOver().catch(() => {});
    await gate.reached;
    drive.kill();
    await drive.start();
    while ((await noted()) > 0) await turn();
    await turn(5);
  }

  test('before the old one stepped aside nothing has changed', async () => {
    await killAt('noted');
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
  });

  test('after it stepped aside it is back', async () => {
    await killAt('aside');
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
  });

  test('after the new one came the old one goes, recoverably', async () => {
    await killAt('placed');
    expect(remote.paths).toEqual(['/old']);
    expect(await drive.text(at('/old'))).toBe('new');
    expect(remote.trash).toHaveLength(1);
  });

  test('of a COPY whose source was moved to its target by somebody else, the old target is kept beside it', async () => {
    const gate = remote.holdNext('move', 'end');
    void copyOver().catch(() => {});
    await gate.reached;
    drive.kill();
    remote.rename(at('/new'), at('/old'));
    await drive.start();
    while ((await noted()) > 0) await turn();
    expect(remote.paths).toEqual(['/old', '/old (1)']);
    expect(remote.text(at('/old (1)'))).toBe('old');
    expect(remote.trash).toEqual([]);
  });

  test('of a COPY that was done the old target goes, recoverably', async () => {
    const gate = remote.holdNext('remove', 'begin');
    void copyOver().catch(() => {});
    await gate.reached;
    drive.kill();
    await drive.start();
    while ((await noted()) > 0) await turn();
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(remote.text(at('/old'))).toBe('new');
    expect(remote.trash).toHaveLength(1);
  });

  test('half-way through a change of letter case, the new name is there', async () => {
    const gate = remote.holdNext('move', 'end');
    void drive.files.move(at('/old'), at('/OLD'), { overwrite: false }).catch(() => {});
    await gate.reached;
    drive.kill();
    await drive.start();
    while ((await noted()) > 0) await turn();
    expect(remote.paths).toEqual(['/OLD', '/new']);
  });

  test('half-way through a change of letter case, and somebody else took the name: both are there', async () => {
    const gate = remote.holdNext('move', 'end');
    void drive.files.move(at('/old'), at('/OLD'), { overwrite: false }).catch(() => {});
    await gate.reached;
    drive.kill();
    remote.putFile(at('/old'), 'theirs');
    await drive.start();
    while ((await noted()) > 0) await turn();
    expect(remote.paths).toEqual(['/OLD (1)', '/new', '/old']);
    expect(remote.text(at('/OLD (1)'))).toBe('old');
  });
});

describe('a change of letter case', () => {
  test('that fails half-way leaves the old name', async () => {
    const gate = remote.holdNext('move', 'end');
    const moving = drive.files.move(at('/old'), at('/OLD'), { overwrite: false });
    await gate.reached;
    remote.failNext('move', 'no-permission');
    gate.release();
    await expect(moving).rejects.toMatchObject({ fault: 'forbidden' });
    expect(remote.paths).toEqual(['/new', '/old']);
    expect(await drive.text(at('/old'))).toBe('old');
    expect(await noted()).toBe(0);
  });

  test('to the case it has already changes nothing', async () => {
    const before = remote.questions;
    expect(await drive.files.move(at('/OLD'), at('/old'), { overwrite: true })).toMatchObject({
      created: false,
    });
    expect(remote.questions).toBe(before);
  });
});

describe('names under which something waits', () => {
  const waiting = at('/.davgate-waiting-1');

  test('are not shown, wherever they come from', async () => {
    remote.putFile(waiting, 'x');
    await turn(10);
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    expect(await drive.files.stat(waiting)).toBeUndefined();
    await drive.close();
    drive = await MemoryDrive.open(remote);
    expect(await drive.names(ROOT)).toEqual(['new', 'old']);
    for await (const { children } of drive.files.walk(ROOT)) expect(children).toHaveLength(2);
  });

  test('are not given to others', async () => {
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

test('an empty file that waits for its body is replaced like any other, and costs no call of its own', async () => {
  await drive.files.write(at('/held'), bodyOf(), { mode: { if: 'any' } });
  const move = (overwrite: boolean) => drive.files.move(at('/new'), at('/held'), { overwrite });
  await expect(move(false)).rejects.toMatchObject({ fault: 'exists' });
  expect(await move(true)).toMatchObject({ created: false });
  await drive.clock.advance(60_000);
  expect(remote.paths).toEqual(['/held', '/old']);
  expect(remote.count('write')).toBe(0);
});
