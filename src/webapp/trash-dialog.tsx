import { useCallback, useState } from 'preact/hooks';
import { Dialog } from './dialogs.tsx';
import { sizeText, timeText } from './format.ts';
import { type Deleted, restoreFailureText, trashOf, undelete } from './history.ts';
import { ItemIcon } from './icons.tsx';
import { t } from './messages.ts';
import { nameOf } from './paths.ts';
import { useAnswer } from './use-answer.ts';

interface Props {
  readonly folder: string;
  readonly onRestored: () => void;
  readonly onClose: () => void;
}

/** Shows what was deleted from a folder, and restores it. */
export function TrashDialog({ folder, onRestored, onClose }: Props) {
  const load = useCallback((signal: AbortSignal) => trashOf(folder, signal), [folder]);
  const { answer, failure } = useAnswer(load);
  const [restored, setRestored] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState<string>();
  const restore = async ({ path, name }: Deleted) => {
    setBusy(path);
    setProblem(undefined);
    try {
      await undelete(path);
      // Another listing would ask the service about each of the others again.
      setRestored((before) => new Set(before).add(path));
      onRestored();
    } catch (error) {
      setProblem(restoreFailureText(name, error));
    }
    setBusy(undefined);
  };
  const shownProblem = problem ?? failure;
  const items = answer && newestFirst(answer.items.filter(({ path }) => !restored.has(path)));
  return (
    <Dialog title={t('trashOf', nameOf(folder) || t('drive'))} onClose={onClose}>
      {shownProblem !== undefined && (
        <p class="problem" role="alert">
          {shownProblem}
        </p>
      )}
      {!items && failure === undefined && <p role="status">{t('loading')}</p>}
      {items?.length === 0 && <p>{t('trashEmpty')}</p>}
      <ul class="history">
        {items?.map((item) => (
          <Line
            key={item.path}
            item={item}
            isBusy={busy !== undefined}
            isRestoring={busy === item.path}
            onRestore={() => void restore(item)}
          />
        ))}
      </ul>
      {answer && answer.leftOut > 0 && <p class="size">{t('trashLeftOut', answer.leftOut)}</p>}
      <div class="actions">
        <button type="button" class="button" onClick={onClose}>
          {t('close')}
        </button>
      </div>
    </Dialog>
  );
}

interface LineProps {
  readonly item: Deleted;
  readonly isBusy: boolean;
  readonly isRestoring: boolean;
  readonly onRestore: () => void;
}

function Line({ item, isBusy, isRestoring, onRestore }: LineProps) {
  const { name, sizeBytes, deletedMs } = item;
  return (
    <li>
      <ItemIcon item={item} />
      <span class="name">
        {name}
        {deletedMs !== undefined && <span class="size">{t('deletedAt', timeText(deletedMs))}</span>}
      </span>
      {sizeBytes !== undefined && <span class="size">{sizeText(sizeBytes)}</span>}
      <button
        type="button"
        class="button"
        aria-label={`${t('restore')}: ${name}`}
        disabled={isBusy}
        onClick={onRestore}
      >
        {isRestoring ? t('restoring') : t('restore')}
      </button>
    </li>
  );
}

/** Folders come first: the service keeps no time of their deletion. */
function newestFirst(items: readonly Deleted[]): readonly Deleted[] {
  const timeOf = ({ deletedMs = Number.MAX_SAFE_INTEGER }: Deleted) => deletedMs;
  return [...items].sort((one, other) => timeOf(other) - timeOf(one));
}
