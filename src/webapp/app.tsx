import { useMemo, useState } from 'preact/hooks';
import { Asking } from './asking.tsx';
import { Breadcrumbs } from './breadcrumbs.tsx';
import { type Asked, type Command, READING } from './commands.ts';
import { DavFailure, type Item, relocate, remove } from './dav.ts';
import { DriveMenu } from './drive-menu.tsx';
import { DropArea } from './drop-area.tsx';
import { filesOf } from './dropped.ts';
import { Editor } from './editor.tsx';
import { Empty } from './empty.tsx';
import { DRAGGED_TYPE, FileList, type View } from './file-list.tsx';
import { type Folder, failureText, useFolder, usePath } from './folder.ts';
import { useKeys } from './keys.ts';
import { t } from './messages.ts';
import { arranged, type Column, type Order } from './order.ts';
import { addressOf, join, nameOf, parentOf } from './paths.ts';
import { Preview } from './preview.tsx';
import { useSearch } from './search.ts';
import { MoreFound, SearchBar } from './search-bar.tsx';
import { type Keys, NOTHING_SELECTED, type Selection, selected } from './selection.ts';
import { SignInAgain } from './sign-in-dialog.tsx';
import { Toolbar } from './toolbar.tsx';
import { type Undo, UndoBar, useUndo } from './undo.tsx';
import { UploadPanel } from './upload-panel.tsx';
import type { NewFile } from './uploads.ts';
import { type Drive, mayChange, useDrive } from './use-drive.ts';
import { useUploads } from './use-uploads.ts';
import { downloadZip } from './zip.ts';

/** The drive in a browser: one folder at a time, and the uploads into all of them. */
export function App() {
  const [path, open] = usePath();
  const { items, failure, reload } = useFolder(path);
  const [order, setOrder] = useState<Order>({ by: 'name', isDescending: false });
  const [view, setView] = useState<View>('list');
  const [uploads, queue] = useUploads(path, reload);
  const drive = useDrive();
  const undo = useUndo(reload);
  return (
    <>
      <FolderPage
        key={path}
        {...{ path, open, items, failure, reload, order, view, drive, undo }}
        onOrder={setOrder}
        onView={setView}
        onFiles={(files) => queue.add(files, path)}
      />
      <UploadPanel uploads={uploads} queue={queue} />
      <SignInAgain />
    </>
  );
}

interface FolderPageProps extends Folder {
  readonly path: string;
  readonly open: (path: string) => void;
  readonly order: Order;
  readonly view: View;
  readonly drive: Drive;
  readonly undo: Undo;
  readonly onOrder: (order: Order) => void;
  readonly onView: (view: View) => void;
  readonly onFiles: (files: readonly NewFile[]) => void;
}

/** One folder, and what can be done with its files. Another folder is another page: nothing selected is left over. */
function FolderPage(props: FolderPageProps) {
  const { path, open, order, view, drive, undo, onFiles } = props;
  const [filter, setFilter] = useState('');
  const [query, setQuery] = useState<string>();
  const found = useSearch(query);
  const { items, failure } = query === undefined ? props : found;
  const reload = () => {
    props.reload();
    found.reload();
  };
  const [selection, setSelection] = useState<Selection>(NOTHING_SELECTED);
  const [asked, setAsked] = useState<Asked>();
  const [previewed, setPreviewed] = useState<Item>();
  const [section, setSection] = useState<string>();
  const [edited, setEdited] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const filtered = query === undefined ? filter : '';
  const shown = useMemo(() => arranged(items ?? [], order, filtered), [items, order, filtered]);
  const chosen = shown.filter((item) => selection.paths.has(item.path));
  const canChangeHere = mayChange(drive, path);
  const canChange =
    chosen.length === 0 ? canChangeHere : chosen.every((item) => mayChange(drive, parentOf(item.path)));

  /** Shows what a search for `wanted` finds, or the folder again. */
  const search = (wanted: string | undefined) => {
    setQuery(wanted);
    setSelection(NOTHING_SELECTED);
    if (wanted === undefined) setFilter('');
  };
  const startSearch = () => filter.trim() !== '' && search(filter.trim());
  const openFolder = (folder: string) => (folder === path ? search(undefined) : open(folder));
  const openItem = (item: Item, heading?: string) => {
    setPreviewed(item.kind === 'file' ? item : undefined);
    setSection(heading);
    if (item.kind === 'folder') openFolder(item.path);
  };
  const paths = shown.map((item) => item.path);
  const select = (item: Item, keys: Keys) => setSelection(selected(selection, paths, item.path, keys));
  const selectAll = (isAll: boolean) =>
    setSelection(isAll ? { ...selection, paths: new Set(paths) } : NOTHING_SELECTED);

  /** Does `work` for each item, goes on after a failure, and shows the last one. */
  const forEach = async (
    of: readonly Item[],
    unmet: 'nameTaken' | 'changedMeanwhile',
    work: (item: Item) => Promise<void>,
  ) => {
    setProblem(undefined);
    for (const item of of)
      await work(item).catch((error: unknown) => {
        const isUnmet = error instanceof DavFailure && error.status === 412;
        setProblem(isUnmet ? t(unmet, item.name) : t('failedTo', item.name, failureText(error)));
      });
    setSelection(NOTHING_SELECTED);
    reload();
  };
  const relocateTo = (how: 'MOVE' | 'COPY', folder: string) =>
    forEach(chosen, 'nameTaken', (item) => relocate(how, item, join(folder, item.name)));
  const removeChosen = async () => {
    const removed: Item[] = [];
    await forEach(chosen, 'changedMeanwhile', async (item) => {
      await remove(item, { isRecoverable: drive.keepsDeleted });
      removed.push(item);
    });
    if (drive.keepsDeleted && removed.length > 0) undo.offer(removed);
  };
  const run = (command: Command) => {
    // The keys do not know what is allowed.
    if (!canChange && !READING.has(command)) return;
    if (command === 'download') download(query === undefined ? path : '/', chosen, setProblem);
    else setAsked(command);
  };

  useKeys({ shown, selection, chosen, select, selectAll, openItem, run, open, clear: setSelection });

  return (
    <DropArea path={path} onFiles={canChangeHere ? onFiles : undefined}>
      <header class="page">
        <h1 class="unseen">{nameOf(path) || t('drive')}</h1>
        <div class="top">
          <Breadcrumbs path={path} onOpen={openFolder} />
          <DriveMenu drive={drive} onOpen={openFolder} onProblem={setProblem} />
        </div>
        <Toolbar
          selectedCount={chosen.length}
          canChange={canChange}
          hasTrash={drive.keepsDeleted}
          hasVersions={chosen.length === 1 && chosen[0]?.kind === 'file'}
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
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <UndoBar undo={undo} />
      </header>
      <main>
        {shown.length > 0 && (
          <FileList
            items={shown}
            view={view}
            order={order}
            selection={selection}
            onOrder={(by) => props.onOrder(nextOrder(order, by))}
            onSelect={select}
            onOpen={openItem}
            onSelectAll={selectAll}
            onDragStart={(item, data) => {
              const isSelected = selection.paths.has(item.path);
              if (!isSelected) setSelection(selected(selection, paths, item.path, NO_KEYS));
              data.setData(DRAGGED_TYPE, '');
              data.effectAllowed = 'move';
            }}
            onMoveInto={canChange ? (folder) => void relocateTo('MOVE', folder) : undefined}
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
        {!canChangeHere && <span>{t('readOnly')}</span>}
        {drive.user !== undefined && <span>{t('signedInAs', drive.user)}</span>}
      </footer>
      <Asking
        {...{ asked, path, chosen, relocateTo }}
        keepsDeleted={drive.keepsDeleted}
        canChange={canChange}
        onDone={reload}
        onClose={() => setAsked(undefined)}
        onRemove={() => void removeChosen()}
        onEdit={setEdited}
      />
      {previewed && (
        <Preview
          item={previewed}
          section={section}
          onFollow={openItem}
          onStep={(by) => openItem(neighbour(shown, previewed, by))}
          onEdit={
            mayChange(drive, parentOf(previewed.path))
              ? () => {
                  setPreviewed(undefined);
                  setEdited(previewed.path);
                }
              : undefined
          }
          onClose={() => setPreviewed(undefined)}
        />
      )}
      {edited !== undefined && <Editor path={edited} onSaved={reload} onClose={() => setEdited(undefined)} />}
    </DropArea>
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
