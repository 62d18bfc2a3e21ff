import { useState } from 'preact/hooks';
import { ConfirmDialog, Dialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { sizeText, timeText } from './format.ts';
import { ItemIcon } from './icons.tsx';
import { addressOfKept, discardWrite, type KeptWrite, type KeptWrites, retryWrite } from './kept-writes.ts';
import { t } from './messages.ts';
import { nameOf } from './paths.ts';

interface Props {
  readonly kept: KeptWrites;
  /** Looks for conflicted copies in the whole drive. */
  readonly onFindConflicts: () => void;
  readonly onClose: () => void;
}

/** Shows the files that wait for the storage service and the refused ones, with buttons for each. */
export function WritesDialog({ kept, onFindConflicts, onClose }: Props) {
  const [discarding, setDiscarding] = useState<KeptWrite>();
  const [busy, setBusy] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const run = async (write: KeptWrite, work: (write: KeptWrite) => Promise<void>) => {
    setBusy(write.id);
    setProblem(undefined);
    try {
      await work(write);
    } catch (error) {
      setProblem(t('failedTo', displayName(write), failureText(error)));
    }
    setBusy(undefined);
    kept.reload();
  };
  const shownProblem = problem ?? kept.failure;
  const inState = (state: KeptWrite['state']) => kept.writes.filter((write) => write.state === state);
  const list = (writes: readonly KeptWrite[]) => (
    <ul class="history">
      {writes.map((write) => (
        <Line
          key={write.id}
          write={write}
          isBusy={busy !== undefined}
          onRetry={() => void run(write, retryWrite)}
          onDiscard={() => setDiscarding(write)}
        />
      ))}
    </ul>
  );
  const [waiting, lost] = [inState('waiting'), inState('lost')];
  return (
    <>
      <Dialog title={t('keptWrites')} isWide onClose={onClose}>
        {shownProblem !== undefined && (
          <p class="problem" role="alert">
            {shownProblem}
          </p>
        )}
        {kept.writes.length === 0 && <p role="status">{t('nothingKept')}</p>}
        {waiting.length > 0 && (
          <section>
            <h3>{t('waitingWrites', waiting.length)}</h3>
            <p class="soft">{t('waitingMeans')}</p>
            {list(waiting)}
          </section>
        )}
        {lost.length > 0 && (
          <section>
            <h3>{t('lostWrites', lost.length)}</h3>
            <p class="soft">{t('lostMeans')}</p>
            {list(lost)}
          </section>
        )}
        {kept.leftOut > 0 && <p class="soft">{t('trashLeftOut', kept.leftOut)}</p>}
        <p class="soft">{t('conflictMeans')}</p>
        <div class="actions">
          <button type="button" class="button first" onClick={onFindConflicts}>
            {t('findConflicts')}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {t('close')}
          </button>
        </div>
      </Dialog>
      {discarding && (
        <ConfirmDialog
          title={t('discardQuestion', displayName(discarding))}
          text={t('discardWarning')}
          action={t('discardWrite')}
          onConfirm={() => void run(discarding, discardWrite)}
          onClose={() => setDiscarding(undefined)}
        />
      )}
    </>
  );
}

interface LineProps {
  readonly write: KeptWrite;
  readonly isBusy: boolean;
  readonly onRetry: () => void;
  readonly onDiscard: () => void;
}

function Line({ write, isBusy, onRetry, onDiscard }: LineProps) {
  const { path, sizeBytes, writtenMs, reason } = write;
  const name = displayName(write);
  return (
    <li>
      <ItemIcon item={{ kind: 'file', path: path ?? '', name }} />
      <span class="name">
        {path ?? name}
        <span class="size">
          {[sizeText(sizeBytes), ...(writtenMs === null ? [] : [timeText(writtenMs)])].join(' · ')}
        </span>
        {reason !== null && <span class="problem">{reason}</span>}
      </span>
      <span class="actions">
        <button
          type="button"
          class="button"
          aria-label={`${t('retry')}: ${name}`}
          disabled={isBusy}
          onClick={onRetry}
        >
          {t('retry')}
        </button>
        <a
          class="button"
          aria-label={`${t('download')}: ${name}`}
          href={addressOfKept(write)}
          download={name}
        >
          {t('download')}
        </a>
        <button
          type="button"
          class="button danger"
          aria-label={`${t('discardWrite')}: ${name}`}
          disabled={isBusy}
          onClick={onDiscard}
        >
          {t('discardWrite')}
        </button>
      </span>
    </li>
  );
}

function displayName({ path }: KeptWrite): string {
  return path === null ? t('unknownName') : nameOf(path);
}
