import { useCallback, useState } from 'preact/hooks';
import type { Item } from './dav.ts';
import { Dialog } from './dialogs.tsx';
import { sizeText, timeText } from './format.ts';
import { addressOfVersion, restoreFailureText, restoreVersion, type Version, versionsOf } from './history.ts';
import { t } from './messages.ts';
import { useAnswer } from './use-answer.ts';

interface Props {
  readonly item: Item;
  /** Whether the user may change the file. */
  readonly canRestore: boolean;
  readonly onRestored: () => void;
  readonly onClose: () => void;
}

/** Shows the versions of a file, which can be downloaded and restored. */
export function VersionsDialog({ item: { path, name }, canRestore, onRestored, onClose }: Props) {
  const load = useCallback((signal: AbortSignal) => versionsOf(path, signal), [path]);
  const { answer, failure, reload } = useAnswer(load);
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const restore = async ({ rev }: Version) => {
    setBusy(true);
    setProblem(undefined);
    try {
      await restoreVersion(path, rev);
      onRestored();
      reload();
    } catch (error) {
      setProblem(restoreFailureText(name, error));
    }
    setBusy(false);
  };
  const shownProblem = problem ?? failure;
  return (
    <Dialog title={t('versionsOf', name)} onClose={onClose}>
      {shownProblem !== undefined && (
        <p class="problem" role="alert">
          {shownProblem}
        </p>
      )}
      {!answer && failure === undefined && <p role="status">{t('loading')}</p>}
      <ul class="history">
        {answer?.versions.map((version) => (
          <Line
            key={version.rev}
            {...{ path, name, version, isBusy }}
            onRestore={canRestore ? () => void restore(version) : undefined}
          />
        ))}
      </ul>
      {answer?.hasMore === true && <p class="size">{t('olderVersions')}</p>}
      <div class="actions">
        <button type="button" class="button" onClick={onClose}>
          {t('close')}
        </button>
      </div>
    </Dialog>
  );
}

interface LineProps {
  readonly path: string;
  readonly name: string;
  readonly version: Version;
  readonly isBusy: boolean;
  readonly onRestore: (() => void) | undefined;
}

function Line({ path, name, version, isBusy, onRestore }: LineProps) {
  const { rev, sizeBytes, committedMs, isCurrent } = version;
  const time = timeText(committedMs);
  return (
    <li>
      <span class="name">{time}</span>
      <span class="size">{sizeText(sizeBytes)}</span>
      <a
        class="button"
        href={addressOfVersion(path, rev)}
        download={name}
        aria-label={`${t('download')}: ${time}`}
      >
        {t('download')}
      </a>
      {isCurrent && <span class="current">{t('currentVersion')}</span>}
      {!isCurrent && onRestore && (
        <button
          type="button"
          class="button"
          aria-label={`${t('restore')}: ${time}`}
          disabled={isBusy}
          onClick={onRestore}
        >
          {t('restore')}
        </button>
      )}
    </li>
  );
}
