import { useMemo, useState } from 'preact/hooks';
import { Asking } from './asking.tsx';
import { Breadcrumbs } from './breadcrumbs.tsx';
import { type Asked, type Command, READING } from './commands.ts';
import type { Item } from './dav.ts';
import { startDrag } from './drag.ts';
import { DriveMenu } from './drive-menu.tsx';
import { filesOf } from './dropped.ts';
import { Empty } from './empty.tsx';
import { FileList, type View } from './file-list.tsx';
import type { Folder } from './folder.ts';
import type { KeptWrites } from './kept-writes.ts';
import { useKeys } from './keys.ts';
import { LockDialog } from './lock-dialog.tsx';
import type { Locks } from './locks.ts';
import { t } from './messages.ts';
import { Notices } from './notices.tsx';
import type { How, Operations } from './operations.ts';
import { arranged, type Column, type Order } from './order.ts';
import { addressOf, nameOf } from './paths.ts';
import { Preview } from './preview.tsx';
import { useSearch } from './search.ts';
import { MoreFound, SearchBar } from './search-bar.tsx';
import { type Keys, NOTHING_SELECTED, type Selection, selected } from './selection.ts';
import { Toolbar } from './toolbar.tsx';
import type { Undo } from './undo.tsx';
import type { NewFile } from './uploads.ts';
import { type Drive, keepsDeleted, mayChange, mayChangeItem, mayOnlyRead } from './use-drive.ts';
import { WritesDialog } from './writes-dialog.tsx';
import { downloadZip } from './zip.ts';

/** The file names of conflicted copies have these words. */
const CONFLICT_WORDS = 'conflicted copy';

interface Props {
  readonly path: string;
  readonly open: (path: string) => void;
  readonly folder: Folder;
  /** Its `current` becomes the function that lists the folder, or what was found, again. */
  readonly relist: { current: () => void };
  readonly order: Order;
  readonly view: View;
  readonly drive: Drive;
  readonly operations: Operations;
  readonly undo: Undo;
  readonly locks: Locks;
  readonly kept: KeptWrites;
  readonly onOrder: (order: Order) => void;
  readonly onView: (view: View) => void;
  readonly onFiles: (files: readonly NewFile[]) => void;
  /** Opens a text file in the editor. */
  readonly onEdit: (path: string) => void;
}

/** One folder, and what can be done with its files. Another folder is another page: nothing selected is left over. */
export function FolderPage(props: Props) {
  const { path, open, folder, order, view, drive, operations, undo, locks, kept } = props;
  const { onFiles, onEdit } = props;
  const [filter, setFilter] = useState('');
  const [query, setQuery] = useState<string>();
  const found = useSearch(query);
  const { items, failure } = query === undefined ? folder : found;
  const reload = () => {
    folder.reload();
    found.reload();
  };
  props.relist.current = reload;
  const [selection, setSelection] = useState<Selection>(NOTHING_SELECTED);
  // With the items of that moment: the folder may change while a dialog is open.
  const [asked, setAsked] = useState<{ readonly command: Asked; readonly items: readonly Item[] }>();
  const [previewed, setPreviewed] = useState<Item>();
  const [section, setSection] = useState<string>();
  const [locked, setLocked] = useState<Item>();
  const [showsKept, setShowsKept] = useState(false);
  const filtered = query === undefined ? filter : '';
  const shown = useMemo(() => arranged(items ?? [], order, filtered), [items, order, filtered]);
  const chosen = shown.filter((item) => selection.paths.has(item.path));
  const canChangeHere = mayChange(drive, path);
  const canChange =
    chosen.length === 0 ? canChangeHere : chosen.every((item) => mayChangeItem(drive, item.path));
  const [only] = chosen;
  const canReceive =
    drive.hasUploadLinks && chosen.length === 1 && only?.kind === 'folder' && mayChange(drive, only.path);

  /** Shows what a search for `wanted` finds, or the folder again. */
  const search = (wanted: string | undefined) => {
    setQuery(wanted);
    setSelection(NOTHING_SELECTED);
    if (wanted === undefined) setFilter('');
  };
  const startSearch = () => filter.trim() !== '' && search(filter.trim());
  const openFolder = (to: string) => (to === path ? search(undefined) : open(to));
  const openItem = (item: Item, heading?: string) => {
    setPreviewed(item.kind === 'file' ? item : undefined);
    setSection(heading);
    if (item.kind === 'folder') openFolder(item.path);
  };
  const paths = shown.map((item) => item.path);
  const relocateAll = async (how: How, wanted: readonly Item[], to: string) => {
    await operations.relocateTo(how, wanted, to);
    setSelection(NOTHING_SELECTED);
  };
  const relocate = canChange ? (how: How, to: string) => void relocateAll(how, chosen, to) : undefined;
  const select = (item: Item, keys: Keys) => setSelection(selected(selection, paths, item.path, keys));
  const selectAll = (isAll: boolean) =>
    setSelection(isAll ? { ...selection, paths: new Set(paths) } : NOTHING_SELECTED);

  const removeAll = async (wanted: readonly Item[]) => {
    const removed = await operations.removeAll(wanted);
    setSelection(NOTHING_SELECTED);
    const restorable = removed.filter((item) => keepsDeleted(drive, item.path));
    if (restorable.length > 0) undo.offer(restorable);
  };
  const run = (command: Command) => {
    // The keys do not know what is allowed.
    if (!canChange && !READING.has(command) && command !== 'receive') return;
    if (command === 'download') download(query === undefined ? path : '/', chosen, operations.setProblem);
    else setAsked({ command, items: chosen });
  };

  useKeys({ shown, selection, chosen, select, selectAll, openItem, run, open, clear: setSelection });

  return (
    <>
      <header class="page">
        <h1 class="unseen">{nameOf(path) || t('drive')}</h1>
        <div class="top">
          <Breadcrumbs path={path} onOpen={openFolder} onItems={relocate} />
          <DriveMenu
            drive={drive}
            keptCount={
              drive.keepsWrites && mayChange(drive, '/') ? kept.writes.length + kept.leftOut : undefined
            }
            onKept={() => setShowsKept(true)}
            onOpen={openFolder}
            onProblem={operations.setProblem}
          />
        </div>
        <Toolbar
          selectedCount={chosen.length}
          canChange={canChange}
          hasTrash={keepsDeleted(drive, path)}
          hasVersions={chosen.length === 1 && chosen[0]?.kind === 'file'}
          canReceive={canReceive}
          view={view}
          filter={filter}
          onCommand={run}
          onClear={() => setSelection(NOTHING_SELECTED)}
          onFiles={(files) => onFiles(filesOf(files, path))}
          onView={props.onView}
          onFilter={(text) => (text === '' && query !== undefined ? search(undefined) : setFilter(text))}
          onSearch={startSearch}
        />
        <SearchBar filter={filter} query={query} onSearch={startSearch} onEnd={() => search(undefined)} />
        <Notices
          operations={operations}
          stale={items && query === undefined ? failure : undefined}
          undo={undo}
        />
      </header>
      <main>
        {shown.length > 0 && (
          <FileList
            items={shown}
            view={view}
            order={order}
            selection={selection}
            marks={{ locks, kept, onLock: setLocked, onKept: () => setShowsKept(true) }}
            onOrder={(by) => props.onOrder(nextOrder(order, by))}
            onSelect={select}
            onOpen={openItem}
            onSelectAll={selectAll}
            onDragStart={(item, data) => {
              const isSelected = selection.paths.has(item.path);
              if (!isSelected) setSelection(selected(selection, paths, item.path, NO_KEYS));
              startDrag(data);
            }}
            onItemsInto={relocate}
            onPlace={query === undefined ? undefined : openFolder}
          />
        )}
        {query !== undefined && <MoreFound {...found} />}
        {shown.length === 0 && (
          <Empty {...{ items, failure, filter, query, reload }} canAdd={canChangeHere} />
        )}
      </main>
      <footer class="page">
        <span class="count">
          {items &&
            (shown.length === items.length
              ? t('items', items.length)
              : t('itemsOf', shown.length, items.length))}
        </span>
        {mayOnlyRead(drive, path) && <span>{t('readOnly')}</span>}
        {drive.user !== undefined && <span>{t('signedInAs', drive.user)}</span>}
      </footer>
      {asked && (
        <Asking
          {...{ asked: asked.command, items: asked.items, path }}
          keepsDeleted={asked.items.every((item) => keepsDeleted(drive, item.path))}
          canChange={canChange}
          onRelocate={(how, to) => void relocateAll(how, asked.items, to)}
          onDone={reload}
          onClose={() => setAsked(undefined)}
          onRemove={() => void removeAll(asked.items)}
          onEdit={onEdit}
        />
      )}
      {locked && (
        <LockDialog
          item={locked}
          locks={locks.on(locked)}
          onEnded={locks.reload}
          onClose={() => setLocked(undefined)}
        />
      )}
      {showsKept && (
        <WritesDialog
          kept={kept}
          onFindConflicts={() => {
            setShowsKept(false);
            search(CONFLICT_WORDS);
          }}
          onClose={() => setShowsKept(false)}
        />
      )}
      {previewed && (
        <Preview
          item={previewed}
          section={section}
          onFollow={openItem}
          onStep={(by) => openItem(neighbour(shown, previewed, by))}
          onEdit={
            mayChangeItem(drive, previewed.path)
              ? () => {
                  setPreviewed(undefined);
                  onEdit(previewed.path);
                }
              : undefined
          }
          onClose={() => setPreviewed(undefined)}
        />
      )}
    </>
  );
}

const NO_KEYS: Keys = { toggles: false, extends: false };

function nextOrder(order: Order, by: Column): Order {
  return { by, isDescending: order.by === by ? !order.isDescending : by !== 'name' };
}

/** Returns the next or previous file. */
function neighbour(items: readonly Item[], item: Item, by: 1 | -1): Item {
  const files = items.filter(({ kind }) => kind === 'file');
  const index = files.findIndex(({ path }) => path === item.path);
  return files[(index + by + files.length) % files.length] ?? item;
}

/** Downloads one file as it is, and everything else as an archive. */
function download(folder: string, items: readonly Item[], refused: (reason: string) => void): void {
  const [only] = items;
  if (items.length > 1 || only?.kind !== 'file') {
    const paths = items.map(({ path }) => path);
    void downloadZip(folder, paths, (reason) => refused(t('cannotDownload', reason)));
    return;
  }
  const link = document.createElement('a');
  link.href = addressOf(only.path, 'file');
  link.download = only.name;
  link.click();
}
