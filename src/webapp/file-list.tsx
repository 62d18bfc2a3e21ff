import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Item } from './dav.ts';
import { useDropTarget } from './drag.ts';
import { sizeText, timeText } from './format.ts';
import { Look } from './look.tsx';
import { type MarkSources, Marks } from './marks.tsx';
import { t } from './messages.ts';
import type { How } from './operations.ts';
import type { Column, Order } from './order.ts';
import { addressOf, nameOf, parentOf } from './paths.ts';
import type { Keys, Selection } from './selection.ts';

export type View = 'list' | 'grid';

/** Size of an item, in CSS pixels; the style sheet has the same. */
const ROW_HEIGHT = 44;
const TILE = { width: 152, height: 168 };

/** Rows kept above and below the visible ones, so that a quick scroll shows no gaps. */
const ROWS_AROUND = 12;

interface Props {
  readonly items: readonly Item[];
  readonly view: View;
  readonly order: Order;
  readonly selection: Selection;
  readonly marks: MarkSources;
  readonly onOrder: (by: Column) => void;
  readonly onSelect: (item: Item, keys: Keys) => void;
  readonly onOpen: (item: Item) => void;
  readonly onSelectAll: (isAll: boolean) => void;
  readonly onDragStart: (item: Item, data: DataTransfer) => void;
  /** Called when the dragged items are dropped on a folder. Absent if the user may not move the selected items. */
  readonly onItemsInto: ((how: How, folder: string) => void) | undefined;
  /** Opens the folder of an item. Present when the items lie in several folders, which are then shown. */
  readonly onPlace?: ((folder: string) => void) | undefined;
}

/**
 * The files of a folder, or those that a search has found. Only the visible ones are in the document, so that 10,000 are as
 * fast as ten.
 */
export function FileList(props: Props) {
  const { items, view, order, selection } = props;
  const box = useRef<HTMLDivElement>(null);
  const { columns, first, last } = useVisible(box, view, items.length);
  const rowHeight = view === 'list' ? ROW_HEIGHT : TILE.height;
  const rowCount = Math.ceil(items.length / columns);
  useSteadyScroll(box, { items, order, columns, rowHeight });
  // Only when a person has gone to an item or sorted the list: a change made elsewhere takes the focus from nothing.
  useEffect(() => {
    const index = items.findIndex(({ path }) => path === selection.current);
    if (index < 0) return;
    reveal(box.current, Math.floor(index / columns) * rowHeight, rowHeight);
    document.querySelector<HTMLElement>('[role=row][tabindex="0"]')?.focus({ preventScroll: true });
  }, [selection.current, order, columns, rowHeight]);
  const shown = items.slice(first * columns, last * columns);
  return (
    <>
      {view === 'list' && <Head {...props} />}
      <div
        ref={box}
        role="grid"
        aria-label={t('files')}
        aria-multiselectable="true"
        aria-rowcount={items.length}
        aria-colcount={view === 'list' ? 3 : 1}
        tabIndex={-1}
        class={`items ${view}`}
      >
        <div style={{ height: `${rowCount * rowHeight}px` }} class="room" role="presentation">
          <div style={{ transform: `translateY(${first * rowHeight}px)` }} class="shown" role="presentation">
            {shown.map((item, index) => (
              <Row key={item.path} item={item} index={first * columns + index} {...props} />
            ))}
          </div>
        </div>
      </div>
    </>
  );
}

function Head({ items, selection, order, onOrder, onSelectAll }: Props) {
  const columns: readonly [Column, string][] = [
    ['name', t('name')],
    ['size', t('size')],
    ['modified', t('modified')],
  ];
  const isAll = items.length > 0 && selection.paths.size === items.length;
  return (
    <div class="head">
      <input
        type="checkbox"
        aria-label={t('selectAll')}
        checked={isAll}
        onChange={(event) => onSelectAll(event.currentTarget.checked)}
      />
      {columns.map(([by, label]) => (
        <button type="button" key={by} class={by} aria-pressed={order.by === by} onClick={() => onOrder(by)}>
          {label}
          <span aria-hidden="true">{order.by === by ? (order.isDescending ? ' ↓' : ' ↑') : ''}</span>
        </button>
      ))}
    </div>
  );
}

function Row({
  item,
  index,
  items,
  view,
  selection,
  marks,
  onSelect,
  onOpen,
  onDragStart,
  onItemsInto,
  onPlace,
}: Props & { readonly item: Item; readonly index: number }) {
  const isSelected = selection.paths.has(item.path);
  const isCurrent = (selection.current ?? items[0]?.path) === item.path;
  const takesItems = onItemsInto !== undefined && item.kind === 'folder' && !isSelected;
  const [isTarget, target] = useDropTarget(takesItems ? (how) => onItemsInto(how, item.path) : undefined);
  return (
    <div
      role="row"
      aria-rowindex={index + 1}
      aria-selected={isSelected}
      tabIndex={isCurrent ? 0 : -1}
      class={`item ${item.kind}${isTarget ? ' target' : ''}`}
      draggable
      onClick={(event) =>
        onSelect(item, { toggles: event.ctrlKey || event.metaKey, extends: event.shiftKey })
      }
      onDblClick={() => onOpen(item)}
      onDragStart={(event) => event.dataTransfer && onDragStart(item, event.dataTransfer)}
      {...target}
    >
      <span role="gridcell" class="name">
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={item.name}
          checked={isSelected}
          onClick={(event) => event.stopPropagation()}
          onChange={() => onSelect(item, { toggles: true, extends: false })}
        />
        <Look item={item} isLarge={view === 'grid'} />
        <a
          tabIndex={-1}
          href={addressOf(item.path, item.kind)}
          draggable={false}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return event.preventDefault();
            event.preventDefault();
            event.stopPropagation();
            onOpen(item);
          }}
        >
          {nameOf(item.path)}
        </a>
        <Marks item={item} sources={marks} />
        {onPlace && <Place folder={parentOf(item.path)} onOpen={onPlace} />}
      </span>
      {view === 'list' && (
        <>
          <span role="gridcell" class="size">
            {item.sizeBytes === undefined ? '' : sizeText(item.sizeBytes)}
          </span>
          <span role="gridcell" class="modified">
            {item.modifiedMs === undefined ? '' : timeText(item.modifiedMs)}
          </span>
        </>
      )}
    </div>
  );
}

interface PlaceProps {
  readonly folder: string;
  readonly onOpen: (folder: string) => void;
}

/** The folder of an item that a search has found. */
function Place({ folder, onOpen }: PlaceProps) {
  const name = folder === '/' ? t('drive') : folder.slice(1);
  return (
    <button
      type="button"
      tabIndex={-1}
      class="place"
      title={t('openPlace', name)}
      onClick={(event) => {
        event.stopPropagation();
        onOpen(folder);
      }}
    >
      {name}
    </button>
  );
}

interface Visible {
  readonly columns: number;
  /** The first row in the document, and the first one after the last. */
  readonly first: number;
  readonly last: number;
}

/** Returns which rows are visible; follows scrolling and resizing. */
function useVisible(box: { readonly current: HTMLDivElement | null }, view: View, count: number): Visible {
  const [visible, setVisible] = useState<Visible>({ columns: 1, first: 0, last: 60 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      const columns = view === 'list' ? 1 : Math.max(1, Math.floor(element.clientWidth / TILE.width));
      const height = view === 'list' ? ROW_HEIGHT : TILE.height;
      const first = Math.max(0, Math.floor(element.scrollTop / height) - ROWS_AROUND);
      const last = Math.ceil((element.scrollTop + element.clientHeight) / height) + ROWS_AROUND;
      setVisible((before) =>
        before.columns === columns && before.first === first && before.last === last
          ? before
          : { columns, first, last },
      );
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener('scroll', measure, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', measure);
    };
  }, [box, view, count]);
  return visible;
}

interface Rows {
  readonly items: readonly Item[];
  readonly order: Order;
  readonly columns: number;
  readonly rowHeight: number;
}

/** Keeps the first visible item where it is when others appear or disappear above it. The top of the list stays the top. */
function useSteadyScroll(box: { readonly current: HTMLDivElement | null }, rows: Rows): void {
  const last = useRef(rows);
  useLayoutEffect(() => {
    const { items, order, columns, rowHeight } = rows;
    const before = last.current;
    last.current = rows;
    const element = box.current;
    if (!element || element.scrollTop < rowHeight || before.order !== order || before.columns !== columns)
      return;
    const row = Math.floor(element.scrollTop / rowHeight);
    const first = before.items[row * columns];
    const now = items.findIndex(({ path }) => path === first?.path);
    if (now >= 0) element.scrollTop += (Math.floor(now / columns) - row) * rowHeight;
  });
}

/** Scrolls until a row is visible. */
function reveal(element: HTMLDivElement | null, top: number, height: number): void {
  if (!element) return;
  if (top < element.scrollTop) element.scrollTop = top;
  else if (top + height > element.scrollTop + element.clientHeight)
    element.scrollTop = top + height - element.clientHeight;
}
