import type { ListedLock } from '../../app/lock-admin.ts';
import { asPlainText, tableOf } from '../table.ts';

const HEAD = ['path', 'user', 'owner', 'scope', 'depth', 'expires', 'token'];

/** Returns a table of the locks, sorted by path. */
export function lockTable(locks: readonly ListedLock[], nowMs: number): string {
  if (locks.length === 0) return 'No locks.';
  const hasDrives = new Set(locks.map(({ drive }) => drive)).size > 1;
  const rows = sortedByPath(locks).map((lock) => [
    ...(hasDrives ? [lock.drive] : []),
    asPlainText(lock.root),
    asPlainText(lock.principal) || '-',
    ownerOf(lock) || '-',
    lock.scope,
    lock.depth,
    `in ${durationOf(lock.expiresMs - nowMs)}`,
    asPlainText(lock.token),
  ]);
  return tableOf([[...(hasDrives ? ['drive'] : []), ...HEAD], ...rows]);
}

/** Returns the locks as JSON, sorted by path. */
export function lockJson(locks: readonly ListedLock[]): string {
  const rows = sortedByPath(locks).map((lock) => ({
    drive: lock.drive,
    path: lock.root,
    user: lock.principal,
    owner: ownerOf(lock),
    scope: lock.scope,
    depth: lock.depth,
    expires: new Date(lock.expiresMs).toISOString(),
    token: lock.token,
  }));
  return JSON.stringify(rows, undefined, 2);
}

function sortedByPath(locks: readonly ListedLock[]): readonly ListedLock[] {
  return locks.toSorted((one, other) => one.root.localeCompare(other.root));
}

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" };

/** Returns the text of the owner element, which clients fill with any elements. */
function ownerOf({ ownerXml }: ListedLock): string {
  const words = ownerXml
    .replace(/<[^>]*>/g, ' ')
    .replace(/&(lt|gt|amp|quot|apos);/g, (whole, name: string) => ENTITIES[name] ?? whole);
  return asPlainText(words.replace(/\s+/g, ' ').trim());
}

function durationOf(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
