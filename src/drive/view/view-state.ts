import type { Claim, Lock, Protection, RunningClaim } from '../../state/locks.ts';
import type { DeadProperty } from '../../state/properties.ts';
import type { RequestState } from '../../state/state.ts';
import { type Path, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { MountedRoot, Mounts } from './mounts.ts';

/** The id of claims outside all drives, where there is nothing to lock. */
const NO_CLAIMS = '';

const UNPROTECTED: Protection = { covering: [], within: [] };

/** The locks and properties of a user's drives, each kept by the drive's own paths and ids. */
export function viewState(mounts: Mounts): RequestState {
  return { locks: viewLocks(mounts), properties: viewProperties(mounts) };
}

function viewLocks(mounts: Mounts): RequestState['locks'] {
  const stores = [...new Set(mounts.all.map(({ drive }) => drive.state.locks))];
  const outerId = (locks: RequestState['locks'], id: string) => `${stores.indexOf(locks)} ${id}`;
  /** Returns the store of claims, and their id there. */
  const claimsOf = (id: string): readonly [RequestState['locks'] | undefined, string] => {
    const space = id.indexOf(' ');
    return space < 0 ? [undefined, id] : [stores[Number(id.slice(0, space))], id.slice(space + 1)];
  };
  return {
    async create(nowMs, wanted) {
      const { mount, path } = mounts.place(wanted.root);
      const { locks } = mount.drive.state;
      const created = await locks.create(nowMs, { ...wanted, root: path });
      if ('token' in created) return shownLock(mount, created);
      if ('conflict' in created) return { conflict: shownLock(mount, created.conflict) };
      if ('full' in created) return created;
      const claim: RunningClaim = created.claim;
      return { claim: { ...shownRoot(mount, claim), id: outerId(locks, claim.id) } };
    },
    async claim(nowMs, claims) {
      const places = claims.map(({ root }) => mounts.find(root));
      const found = places.filter((place) => place !== undefined);
      const [first] = found;
      if (!first) return { id: NO_CLAIMS, protections: claims.map(() => UNPROTECTED) };
      if (found.some(({ mount }) => mount.drive !== first.mount.drive))
        throw new FileError(
          'forbidden',
          'cannot move properties and locks: source and destination are in different drives; download it and upload it there',
        );
      const { locks } = first.mount.drive.state;
      const inner: Claim[] = [];
      claims.forEach(({ depth }, index) => {
        const place = places[index];
        if (place) inner.push({ root: place.path, depth });
      });
      const claimed = await locks.claim(nowMs, inner);
      const protections = [...claimed.protections];
      const shown = places.map((place) => {
        const own = place && protections.shift();
        return own ? shownProtection(place.mount, own) : UNPROTECTED;
      });
      return { id: outerId(locks, claimed.id), protections: shown };
    },
    async claimsHold(id) {
      const [locks, own] = claimsOf(id);
      return locks?.claimsHold(own) ?? true;
    },
    endClaims(id) {
      const [locks, own] = claimsOf(id);
      return locks?.endClaims(own) ?? Promise.resolve();
    },
    async claimsEnd(id, signal) {
      const [locks, own] = claimsOf(id);
      await locks?.claimsEnd(own, signal);
    },
    async refresh(nowMs, token, span) {
      for (const mount of mounts.all) {
        const renewed = await mount.drive.state.locks.refresh(nowMs, token, span);
        if (renewed) return shownLock(mount, renewed);
      }
      return undefined;
    },
    async release(token) {
      for (const locks of stores) if (await locks.release(token)) return true;
      return false;
    },
    withdraw(lock) {
      // The token tells which lock is meant.
      return mounts.place(lock.root).mount.drive.state.locks.withdraw(lock);
    },
    async covering(nowMs, path) {
      const place = mounts.find(path);
      if (!place) return [];
      return shownLocks(place.mount, await place.mount.drive.state.locks.covering(nowMs, place.path));
    },
    async within(nowMs, path) {
      const place = mounts.find(path);
      const tops = mounts.all.map((mount) => ({ mount, path: mount.inner(mount.at) }));
      const places = place ? [place] : path === ROOT ? tops : [];
      const found = places.map(async ({ mount, path: inner }) =>
        shownLocks(mount, await mount.drive.state.locks.within(nowMs, inner)),
      );
      return (await Promise.all(found)).flat();
    },
  };
}

function viewProperties(mounts: Mounts): RequestState['properties'] {
  const stores = new Set(mounts.all.map(({ drive }) => drive.state.properties));
  return {
    async of(ids) {
      const all = new Map<string, readonly DeadProperty[]>();
      for (const mount of mounts.all) {
        const own = ids.map((id) => mount.originalId(id)).filter((id) => id !== undefined);
        if (own.length === 0) continue;
        for (const [id, properties] of await mount.drive.state.properties.of(own))
          all.set(mount.idOf(id), properties);
      }
      return all;
    },
    async change(id, changes) {
      for (const mount of mounts.all) {
        const own = mount.originalId(id);
        if (own !== undefined) return mount.drive.state.properties.change(own, changes);
      }
      throw new FileError('forbidden', 'the folder above the drives keeps no properties');
    },
    async version() {
      // Each of them only grows, so the sum changes with each change.
      const versions = await Promise.all([...stores].map((properties) => properties.version()));
      return versions.reduce((sum, version) => sum + version, 0);
    },
  };
}

function shownLocks(mount: MountedRoot, locks: readonly Lock[]): readonly Lock[] {
  return locks.map((lock) => shownLock(mount, lock));
}

function shownLock(mount: MountedRoot, lock: Lock): Lock {
  return shownRoot(mount, lock);
}

/** A lock above the user's root folder is shown at that folder. */
function shownRoot<Rooted extends { readonly root: Path }>(mount: MountedRoot, rooted: Rooted): Rooted {
  return { ...rooted, root: mount.outer(rooted.root) ?? mount.at };
}

function shownProtection(mount: MountedRoot, { covering, within }: Protection): Protection {
  return { covering: shownLocks(mount, covering), within: shownLocks(mount, within) };
}
