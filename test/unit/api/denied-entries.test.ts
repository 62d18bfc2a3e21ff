import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Remote } from '../../../src/api/remote.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import { fileMetadata, LOSSES, notFound, ok, refuse, tagged, text } from '../../support/scripted-service.ts';
import { STAT, stored } from '../../support/uploaded-file.ts';

// The service sometimes denies an entry for a moment after it was made.

const ID = 'id:1';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

const denied = (union: string) =>
  refuse({ '.tag': union, [union]: { '.tag': 'not_found' } }, `${union}/not_found`);
const there = stored({ id: ID });
const made = ok({ metadata: tagged('file', fileMetadata('/to', { id: ID })) });

describe.each<[string, string, string, (remote: Remote) => Promise<unknown>]>([
  ['a move', 'files/move_v2', 'from_lookup', (remote) => remote.move(at('/f'), at('/to'), undefined, ID)],
  ['a copy', 'files/copy_v2', 'from_lookup', (remote) => remote.copy(at('/f'), at('/to'))],
  [
    'a deletion',
    'files/delete_v2',
    'path_lookup',
    (remote) => remote.remove(at('/f'), { permanent: false, id: ID }),
  ],
])('%s', (what, route, union, change) => {
  test(`${what} of an entry that the service denies twice is made by the third call`, async () => {
    const { service, remote } = scripted;
    service.on(route, denied(union), denied(union), made).on(STAT, there);
    await change(remote);
    expect(service.callsOf(route)).toHaveLength(3);
  });

  test(`${what} of an entry that the service denies each time fails with no-permission after five calls and is not made`, async () => {
    await scripted.close();
    scripted = await openScripted({ random: () => 0.9 });
    const { service, remote, clock } = scripted;
    service.on(route, denied(union)).on(STAT, there);
    await expect(clock.during(change(remote))).rejects.toMatchObject({
      failure: 'no-permission',
      details: { isUndone: true },
    });
    expect(service.callsOf(route)).toHaveLength(5);
  });

  test(`${what} of an entry that is gone fails with not-found after one call`, async () => {
    const { service, remote } = scripted;
    service.on(route, denied(union)).on(STAT, notFound);
    await expect(change(remote)).rejects.toMatchObject({ failure: 'not-found' });
    expect(service.callsOf(route)).toHaveLength(1);
  });

  test(`${what} of a denied entry that cannot be looked up fails with the reason of that and is not made`, async () => {
    const { service, remote } = scripted;
    service.on(route, denied(union)).on(STAT, text(429, 'slow down', { 'retry-after': '300' }));
    await expect(change(remote)).rejects.toMatchObject({
      failure: 'rate-limited',
      details: { isUndone: true, retryAfterMs: 300_000 },
    });
  });
});

test.each<[string, string, string, (remote: Remote) => Promise<unknown>]>([
  ['a move', 'files/move_v2', 'from_lookup', (remote) => remote.move(at('/f'), at('/to'), undefined, ID)],
  [
    'a deletion',
    'files/delete_v2',
    'path_lookup',
    (remote) => remote.remove(at('/f'), { permanent: false, id: ID }),
  ],
])(
  '%s of an entry whose path another one has fails with not-found after one call',
  async (_, route, union, change) => {
    const { service, remote } = scripted;
    service.on(route, denied(union)).on(STAT, stored({ id: 'id:2' }));
    await expect(change(remote)).rejects.toMatchObject({ failure: 'not-found' });
    expect(service.callsOf(route)).toHaveLength(1);
  },
);

test.each(LOSSES)(
  'a move whose first call is lost on its way (%s) is repeated although the service then denies the entry',
  async (_, loss) => {
    const { service, remote } = scripted;
    service.on('files/move_v2', loss, denied('from_lookup'), made);
    service.on(STAT, (response, call, request) => {
      const { path } = call.arg as { path: string };
      return (path === '/f' ? there : notFound)(response, call, request);
    });
    expect(await remote.move(at('/f'), at('/to'), undefined, ID)).toMatchObject({ path: '/to' });
    expect(service.callsOf('files/move_v2')).toHaveLength(3);
  },
);
