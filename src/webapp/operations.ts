import { useState } from 'preact/hooks';
import { DavFailure, type Item, relocate, remove } from './dav.ts';
import { failureText } from './folder.ts';
import { t } from './messages.ts';
import { join } from './paths.ts';

/** Whether items are moved or copied. */
export type How = 'MOVE' | 'COPY';

/** An operation on several items, one after the other. */
export interface Operations {
  /** Why the last one was not done, or not with all items. */
  readonly problem: string | undefined;
  readonly setProblem: (problem: string | undefined) => void;
  /** How far the running one is; absent for one item. */
  readonly progress: string | undefined;
  readonly relocateTo: (how: How, items: readonly Item[], folder: string) => Promise<void>;
  /** Resolves with the items that were deleted. */
  readonly removeAll: (items: readonly Item[]) => Promise<readonly Item[]>;
}

/** `onEnd` is called after each operation; `keepsDeleted`: whether a deletion can be undone. */
export function useOperations(onEnd: () => void, keepsDeleted: boolean): Operations {
  const [problem, setProblem] = useState<string>();
  const [progress, setProgress] = useState<string>();

  /** Does `work` for each item, and goes on after a failure. */
  const forEach = async (
    items: readonly Item[],
    unmet: 'nameTaken' | 'changedMeanwhile',
    work: (item: Item) => Promise<void>,
  ) => {
    setProblem(undefined);
    const problems: string[] = [];
    for (const [index, item] of items.entries()) {
      if (items.length > 1) setProgress(t('workingOn', index + 1, items.length, item.name));
      await work(item).catch((error: unknown) => {
        const isUnmet = error instanceof DavFailure && error.status === 412;
        problems.push(isUnmet ? t(unmet, item.name) : t('failedTo', item.name, failureText(error)));
      });
    }
    setProgress(undefined);
    const [first] = problems;
    setProblem(first !== undefined && problems.length > 1 ? t('andMore', first, problems.length - 1) : first);
    onEnd();
  };
  return {
    problem,
    setProblem,
    progress,
    relocateTo: (how, items, folder) =>
      forEach(items, 'nameTaken', (item) => relocate(how, item, join(folder, item.name))),
    async removeAll(items) {
      const removed: Item[] = [];
      await forEach(items, 'changedMeanwhile', async (item) => {
        await remove(item, { isRecoverable: keepsDeleted });
        removed.push(item);
      });
      return removed;
    },
  };
}
