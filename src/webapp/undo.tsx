import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Item } from './dav.ts';
import { restoreFailureText, undelete } from './history.ts';
import { Sign } from './icons.tsx';
import { isTyping } from './keys.ts';
import { t } from './messages.ts';

/** How long a deletion can be undone by one press, in ms. After that the trash has it. */
const OFFER_MS = 20_000;

type State =
  | { readonly kind: 'offered'; readonly items: readonly Item[]; readonly untilMs: number }
  | { readonly kind: 'running' }
  | { readonly kind: 'failed'; readonly problem: string };

/** The last deletion, for as long as it can be undone. */
export interface Undo {
  readonly state: State | undefined;
  /** Called after `items` were deleted. */
  readonly offer: (items: readonly Item[]) => void;
  readonly run: () => void;
  readonly close: () => void;
}

/** Keeps the last deletion. Ctrl+Z undoes it. `onRestored` lists the shown folder again. */
export function useUndo(onRestored: () => void): Undo {
  const [state, setState] = useState<State>();
  // The folder may be another one when the files are back.
  const restored = useRef(onRestored);
  restored.current = onRestored;
  useEffect(() => {
    if (state?.kind !== 'offered') return;
    // By the clock, because the timers of a hidden page or a sleeping computer stand still.
    const look = () => Date.now() >= state.untilMs && setState(undefined);
    const timer = setInterval(look, 1000);
    return () => clearInterval(timer);
  }, [state]);
  const run = () => {
    if (state?.kind !== 'offered') return;
    const running: State = { kind: 'running' };
    setState(running);
    void undeleteAll(state.items).then((problem) => {
      const after: State | undefined = problem === undefined ? undefined : { kind: 'failed', problem };
      // Something else may have been deleted meanwhile.
      setState((now) => (now === running ? after : now));
      restored.current();
    });
  };
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key !== 'z' || !(event.ctrlKey || event.metaKey)) return;
      if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
      event.preventDefault();
      run();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
  return {
    state,
    offer: (items) => setState({ kind: 'offered', items, untilMs: Date.now() + OFFER_MS }),
    run,
    close: () => setState(undefined),
  };
}

/** Brings all of them back that it can. Returns why one could not be. */
async function undeleteAll(items: readonly Item[]): Promise<string | undefined> {
  let problem: string | undefined;
  for (const { path, name } of items) {
    try {
      await undelete(path);
    } catch (error) {
      problem = restoreFailureText(name, error);
    }
  }
  return problem;
}

/** Says what was deleted, and undoes it. */
export function UndoBar({ undo: { state, run, close } }: { readonly undo: Undo }) {
  if (!state) return null;
  return (
    <div class="undo">
      {state.kind === 'failed' ? (
        <span class="problem" role="alert">
          {state.problem}
        </span>
      ) : (
        <span role="status">{state.kind === 'running' ? t('restoring') : deletedText(state.items)}</span>
      )}
      {state.kind === 'offered' && (
        <button type="button" class="button" onClick={run}>
          {t('undo')}
        </button>
      )}
      {state.kind !== 'running' && (
        <button type="button" class="button plain" aria-label={t('close')} onClick={close}>
          <Sign name="close" />
        </button>
      )}
    </div>
  );
}

function deletedText(items: readonly Item[]): string {
  const [first] = items;
  return items.length === 1 && first ? t('deletedOne', first.name) : t('deletedMany', items.length);
}
