import { useState } from 'preact/hooks';
import type { How } from './operations.ts';

/** How items are marked while they are dragged within the page. Another window of the drive has another mark. */
const DRAGGED_TYPE = `application/x-davgate-items-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`;

/** Begins to drag the selected items. */
export function startDrag(data: DataTransfer): void {
  data.setData(DRAGGED_TYPE, '');
  data.effectAllowed = 'copyMove';
}

/** The listeners of an element on which dragged items can be dropped. */
interface DropTarget {
  readonly onDragOver: (event: DragEvent) => void;
  readonly onDragLeave: () => void;
  readonly onDrop: (event: DragEvent) => void;
}

/**
 * Returns whether dragged items are over an element, and its listeners. With Ctrl, or Alt on a Mac, they are copied.
 * `onItems`: called with items that are dropped on it; absent where none can be.
 */
export function useDropTarget(
  onItems: ((how: How) => void) | undefined,
): readonly [isOver: boolean, target: DropTarget] {
  const [isOver, setOver] = useState(false);
  /** Takes the event, unless something else is dragged, such as a file of the desktop. */
  const takes = (event: DragEvent): boolean => {
    if (!onItems || event.dataTransfer?.types.includes(DRAGGED_TYPE) !== true) return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  const target: DropTarget = {
    onDragOver(event) {
      if (!takes(event)) return;
      if (event.dataTransfer) event.dataTransfer.dropEffect = isCopy(event) ? 'copy' : 'move';
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop(event) {
      if (!takes(event)) return;
      setOver(false);
      onItems?.(isCopy(event) ? 'COPY' : 'MOVE');
    },
  };
  return [isOver, target];
}

function isCopy({ ctrlKey, altKey }: DragEvent): boolean {
  return ctrlKey || altKey;
}
