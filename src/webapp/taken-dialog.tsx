import { useState } from 'preact/hooks';
import { Dialog } from './dialogs.tsx';
import { t } from './messages.ts';
import type { Choice, Taken } from './operations.ts';

/** Asks what to do with an item whose name is taken in the folder that it is moved or copied to. */
export function TakenDialog({ taken }: { readonly taken: Taken }) {
  const { name, canReplace, hasMore, choose } = taken;
  const [isForAll, setForAll] = useState(false);
  const button = (choice: Choice, text: string, kind = 'button') => (
    <button type="button" class={kind} onClick={() => choose(choice, isForAll)}>
      {text}
    </button>
  );
  return (
    <Dialog title={t('existsAlready', name)} onClose={() => choose('skip', false)}>
      <p>{t(canReplace ? 'takenFile' : 'takenOther')}</p>
      {hasMore && (
        <label class="check">
          <input type="checkbox" checked={isForAll} onChange={() => setForAll(!isForAll)} />
          {t('takenForAll')}
        </label>
      )}
      <div class="actions">
        {button('skip', t('skip'))}
        {canReplace && button('replace', t('replace'), 'button danger')}
        {button('keep-both', t('keepBoth'), 'button primary')}
      </div>
    </Dialog>
  );
}
