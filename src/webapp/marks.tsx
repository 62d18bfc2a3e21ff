import type { Item } from './dav.ts';
import { Sign } from './icons.tsx';
import type { KeptWrites } from './kept-writes.ts';
import { type Lock, type Locks, ownerOf } from './locks.ts';
import { t } from './messages.ts';

/** The names of conflicted copies: of davgate itself, and of the storage service's own programs. */
const CONFLICT = /\((.+['’]s )?conflicted copy\b.*\)/i;

/** Whether an item is the second version that was kept when two people had changed a file at the same time. */
function isConflictedCopy({ kind, name }: Pick<Item, 'kind' | 'name'>): boolean {
  return kind === 'file' && CONFLICT.test(name);
}

/** State of the items of a list, shown beside their names. */
export interface MarkSources {
  readonly locks: Locks;
  readonly kept: KeptWrites;
  readonly onLock: (item: Item) => void;
  readonly onKept: () => void;
}

/** The marks of an item: locked, waiting for the storage service, conflicted copy. */
export function Marks({ item, sources }: { readonly item: Item; readonly sources: MarkSources }) {
  const { locks, kept, onLock, onKept } = sources;
  const [lock] = locks.on(item);
  const waiting = item.kind === 'file' ? kept.at(item.path) : undefined;
  return (
    <>
      {isConflictedCopy(item) && (
        <span class="mark conflict" title={t('conflictMeans')}>
          {t('conflict')}
        </span>
      )}
      {waiting && (
        <MarkButton
          sign="clock"
          isBad={waiting.reason !== null}
          label={waiting.reason === null ? t('waitsToBeSent') : t('waitsBecause', waiting.reason)}
          onPress={onKept}
        />
      )}
      {lock && <MarkButton sign="lock" isBad={false} label={lockText(lock)} onPress={() => onLock(item)} />}
    </>
  );
}

function lockText(lock: Lock): string {
  return t('lockedBy', ownerOf(lock) || t('someone'));
}

interface ButtonProps {
  readonly sign: 'clock' | 'lock';
  readonly isBad: boolean;
  readonly label: string;
  readonly onPress: () => void;
}

function MarkButton({ sign, isBad, label, onPress }: ButtonProps) {
  return (
    <button
      type="button"
      tabIndex={-1}
      class={`mark ${isBad ? 'bad' : ''}`}
      title={label}
      aria-label={label}
      onClick={(event) => {
        event.stopPropagation();
        onPress();
      }}
    >
      <Sign name={sign} />
    </button>
  );
}
