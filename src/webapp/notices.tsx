import { Sign } from './icons.tsx';
import { t } from './messages.ts';
import type { Operations } from './operations.ts';
import { type Undo, UndoBar } from './undo.tsx';

interface Props {
  readonly operations: Operations;
  /** Why the list may be out of date. */
  readonly stale: string | undefined;
  readonly undo: Undo;
}

/** The outcome of the last operation, and the state of the list. */
export function Notices({ operations, stale, undo }: Props) {
  const { problem, setProblem, progress } = operations;
  return (
    <>
      {progress !== undefined && (
        <p class="soft" role="status">
          {progress}
        </p>
      )}
      {problem !== undefined && (
        <div class="undo">
          <p class="problem" role="alert">
            {problem}
          </p>
          <button
            type="button"
            class="button plain"
            aria-label={t('close')}
            onClick={() => setProblem(undefined)}
          >
            <Sign name="close" />
          </button>
        </div>
      )}
      {stale !== undefined && (
        <p class="problem" role="status">
          {t('cannotRefresh', stale)}
        </p>
      )}
      <UndoBar undo={undo} />
    </>
  );
}
