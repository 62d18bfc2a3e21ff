import { useState } from 'preact/hooks';
import type { Item } from './dav.ts';
import { ConfirmDialog, Dialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { timeText } from './format.ts';
import { type Lock, ownerOf, unlock } from './locks.ts';
import { t } from './messages.ts';

interface Props {
  readonly item: Item;
  readonly locks: readonly Lock[];
  readonly onEnded: () => void;
  readonly onClose: () => void;
}

/** Says who has locked an item, and lets people end their own locks. */
export function LockDialog({ item, locks, onEnded, onClose }: Props) {
  const [ending, setEnding] = useState<Lock>();
  const [problem, setProblem] = useState<string>();
  const end = async (lock: Lock) => {
    setProblem(undefined);
    try {
      await unlock(lock, lock.path === item.path ? item.kind : 'folder');
    } catch (error) {
      setProblem(failureText(error));
    }
    onEnded();
  };
  return (
    <>
      <Dialog title={t('lockedItem', item.name)} onClose={onClose}>
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {locks.length === 0 ? <p>{t('notLocked')}</p> : <p>{t('lockedMeans')}</p>}
        <ul class="history">
          {locks.map((lock) => (
            <li key={`${lock.path} ${lock.user} ${lock.expiresMs}`}>
              <span class="name">
                {ownerOf(lock) || t('someone')}
                <span class="size">
                  {lock.path === item.path ? '' : `${t('lockedAbove', lock.path)} · `}
                  {t('lockedUntil', timeText(lock.expiresMs))}
                </span>
              </span>
              {lock.token !== undefined && (
                <button type="button" class="button danger" onClick={() => setEnding(lock)}>
                  {t('endLock')}
                </button>
              )}
            </li>
          ))}
        </ul>
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {t('close')}
          </button>
        </div>
      </Dialog>
      {ending && (
        <ConfirmDialog
          title={t('endLockQuestion')}
          text={t('endLockWarning')}
          action={t('endLock')}
          onConfirm={() => void end(ending)}
          onClose={() => setEnding(undefined)}
        />
      )}
    </>
  );
}
