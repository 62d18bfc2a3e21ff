import { useState } from 'preact/hooks';
import { numberedName } from '../util/file-name.ts';
import { DavFailure, find, type Item, relocate, remove } from './dav.ts';
import { failureText } from './folder.ts';
import { t } from './messages.ts';
import { join } from './paths.ts';
import { type Drive, keepsDeleted } from './use-drive.ts';

/** Whether items are moved or copied. */
export type How = 'MOVE' | 'COPY';

/** What to do with an item whose name is taken in the target folder. */
export type Choice = 'replace' | 'keep-both' | 'skip';

/** The question that an operation waits for. */
export interface Taken {
  readonly name: string;
  /** Whether the item may take the place of the one that is there: only a file that of a file. */
  readonly canReplace: boolean;
  /** Whether the answer can be for the items that follow, too. */
  readonly hasMore: boolean;
  readonly choose: (choice: Choice, isForAll: boolean) => void;
}

/** An operation on several items, one after the other. */
export interface Operations {
  /** Why the last one was not done, or not with all items. */
  readonly problem: string | undefined;
  readonly setProblem: (problem: string | undefined) => void;
  /** How far the running one is; absent for one item. */
  readonly progress: string | undefined;
  /** The question that the running one waits for. */
  readonly taken: Taken | undefined;
  readonly relocateTo: (how: How, items: readonly Item[], folder: string) => Promise<void>;
  /** Resolves with the items that were deleted. */
  readonly removeAll: (items: readonly Item[]) => Promise<readonly Item[]>;
}

/** Operations outlive the page of their folder. `onEnd` is called after each. */
export function useOperations(onEnd: () => void, drive: Drive): Operations {
  const [problem, setProblem] = useState<string>();
  const [progress, setProgress] = useState<string>();
  // Two operations may ask at the same time.
  const [questions, setQuestions] = useState<readonly Taken[]>([]);

  /** Does `work` for each item, and goes on after a failure. */
  const forEach = async (items: readonly Item[], work: (item: Item, index: number) => Promise<void>) => {
    setProblem(undefined);
    const problems: string[] = [];
    for (const [index, item] of items.entries()) {
      if (items.length > 1) setProgress(t('workingOn', index + 1, items.length, item.name));
      await work(item, index).catch((error: unknown) => {
        const isChanged = isUnmet(error);
        problems.push(
          isChanged ? t('changedMeanwhile', item.name) : t('failedTo', item.name, failureText(error)),
        );
      });
    }
    setProgress(undefined);
    const [first] = problems;
    // Otherwise the problem of another operation stays.
    if (first !== undefined)
      setProblem(problems.length > 1 ? t('andMore', first, problems.length - 1) : first);
    onEnd();
  };

  const ask = (asked: Omit<Taken, 'choose'>) =>
    new Promise<{ readonly choice: Choice; readonly isForAll: boolean }>((resolve) => {
      const question: Taken = {
        ...asked,
        choose(choice, isForAll) {
          setQuestions((before) => before.filter((each) => each !== question));
          resolve({ choice, isForAll });
        },
      };
      setQuestions((before) => [...before, question]);
    });

  return {
    problem,
    setProblem,
    progress,
    taken: questions[0],
    relocateTo(how, items, folder) {
      let forAll: Choice | undefined;
      return forEach(items, async (item, index) => {
        const to = join(folder, item.name);
        if (to === item.path) return how === 'COPY' ? keepBoth(how, item, folder) : undefined;
        if (await isRelocated(how, item, to)) return;
        const canReplace = await mayReplace(item, to);
        let choice = forAll === 'replace' && !canReplace ? undefined : forAll;
        if (!choice) {
          const hasMore = index < items.length - 1;
          const answer = await ask({ name: item.name, canReplace, hasMore });
          choice = answer.choice;
          if (answer.isForAll) forAll = choice;
        }
        if (choice === 'replace') await relocate(how, item, to, { replaces: true });
        if (choice === 'keep-both') await keepBoth(how, item, folder);
      });
    },
    async removeAll(items) {
      const removed: Item[] = [];
      await forEach(items, async (item) => {
        await remove(item, { isRecoverable: keepsDeleted(drive, item.path) });
        removed.push(item);
      });
      return removed;
    },
  };
}

/** Moves or copies `item` unless something is at `to`. Returns whether it is there now. */
async function isRelocated(how: How, item: Item, to: string): Promise<boolean> {
  try {
    await relocate(how, item, to);
    return true;
  } catch (error) {
    if (isUnmet(error)) return false;
    throw error;
  }
}

/** A folder that replaced another one would take along everything in it. */
async function mayReplace(item: Item, to: string): Promise<boolean> {
  return item.kind === 'file' && (await find(to)).kind === 'file';
}

/** Moves or copies `item` to its name with the next free number. The dot in a folder's name begins no extension. */
async function keepBoth(how: How, item: Item, folder: string): Promise<void> {
  for (let number = 2; ; number++) {
    const name = item.kind === 'folder' ? `${item.name} (${number})` : numberedName(item.name, number);
    if (await isRelocated(how, item, join(folder, name))) return;
  }
}

function isUnmet(error: unknown): boolean {
  return error instanceof DavFailure && error.status === 412;
}
