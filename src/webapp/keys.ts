import { useLayoutEffect } from 'preact/hooks';
import type { Command } from './commands.ts';
import type { Item } from './dav.ts';
import { parentOf, pathOfAddress } from './paths.ts';
import { type Keys, NOTHING_SELECTED, type Selection } from './selection.ts';

interface KeyTargets {
  readonly shown: readonly Item[];
  readonly selection: Selection;
  readonly chosen: readonly Item[];
  readonly select: (item: Item, keys: Keys) => void;
  readonly selectAll: (isAll: boolean) => void;
  readonly openItem: (item: Item) => void;
  readonly run: (command: Command) => void;
  readonly open: (path: string) => void;
  readonly clear: (selection: Selection) => void;
}

/** The keys of the list: those that file managers have in common. */
export function useKeys(targets: KeyTargets): void {
  useLayoutEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (isTyping(event.target) || document.querySelector('dialog[open]')) return;
      if (pressed(event, targets)) event.preventDefault();
    };
    addEventListener('keydown', press);
    return () => removeEventListener('keydown', press);
  });
}

/** Returns whether the key means something. */
function pressed(event: KeyboardEvent, targets: KeyTargets): boolean {
  const { shown, selection, chosen, select, selectAll, openItem, run, open, clear } = targets;
  // The address is ahead of what is shown when somebody types fast.
  const path = pathOfAddress(location.pathname);
  const { key, ctrlKey, metaKey, shiftKey: extends_ } = event;
  const isButton = event.target instanceof HTMLElement && event.target.closest('button, a, input') !== null;
  const at = shown.findIndex((item) => item.path === selection.current);
  const step = stepOf(key, at, shown.length);
  const reached = step === undefined ? undefined : shown[step];
  const current = shown[at];
  if (reached) select(reached, { toggles: false, extends: extends_ });
  else if (key === 'a' && (ctrlKey || metaKey)) selectAll(true);
  else if (key === 'Escape') clear({ ...NOTHING_SELECTED, current: selection.current });
  else if (key === 'Backspace' && path !== '/') open(parentOf(path));
  else if (key === 'Delete' && chosen.length > 0) run('remove');
  else if (key === 'F2' && chosen.length === 1) run('rename');
  else if (key === 'Enter' && current && !isButton) openItem(current);
  else if (key === ' ' && current && !isButton) select(current, { toggles: true, extends: false });
  else return false;
  return true;
}

/** Returns the index that an arrow key leads to. */
function stepOf(key: string, at: number, count: number): number | undefined {
  const clamped = (index: number) => Math.min(count - 1, Math.max(0, index));
  const columns = columnCount();
  if (key === 'ArrowDown') return clamped(at < 0 ? 0 : at + columns);
  if (key === 'ArrowUp') return clamped(at - columns);
  if (key === 'ArrowRight' && columns > 1) return clamped(at + 1);
  if (key === 'ArrowLeft' && columns > 1) return clamped(at - 1);
  if (key === 'Home') return 0;
  return key === 'End' ? count - 1 : undefined;
}

/** How many items stand beside each other, as the style sheet has laid them out. */
function columnCount(): number {
  const shown = document.querySelector('.items.grid .shown');
  return shown ? getComputedStyle(shown).gridTemplateColumns.split(' ').length : 1;
}

/** Whether the keys belong to a field or a dialog. */
export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.closest('input:not([type=checkbox]), textarea, dialog') !== null
  );
}
