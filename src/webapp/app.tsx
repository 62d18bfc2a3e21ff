import { useMemo, useState } from 'preact/hooks';
import { Asking } from './asking.tsx';
import { Breadcrumbs } from './breadcrumbs.tsx';
import type { Asked, Command } from './commands.ts';
import { DavFailure, type Item, relocate, remove } from './dav.ts';
import { DropArea } from './drop-area.tsx';
import { filesOf } from './dropped.ts';
import { DRAGGED_TYPE, FileList, type View } from './file-list.tsx';
import { type Folder, failureText, useFolder, usePath } from './folder.ts';
import { useKeys } from './keys.ts';
import { t } from './messages.ts';
import { arranged, type Column, type Order } from './order.ts';
import { addressOf, join, nameOf } from './paths.ts';
import { Preview } from './preview.tsx';
import { type Keys, NOTHING_SELECTED, type Selection, selected } from './selection.ts';
import { Toolbar } from './toolbar.tsx';
import { UploadPanel } from './upload-panel.tsx';
import type { NewFile } from './uploads.ts';
import { useUploads } from './use-uploads.ts';
import { useUser } from './use-user.ts';

/** The drive in a browser: one folder at a time, and the uploads into all of them. */
export function App() {
  const [path, open] = usePath();
  const { items, failure, reload } = useFolder(path);
  const [order, setOrder] = useState<Order>({ by: 'name', isDescending: false });
  const [view, setView] = useState<View>('list');
  const [uploads, queue] = useUploads(path, reload);
  const user = useUser();
  return (
    <>
      <FolderPage
        key={path}
        {...{ path, open, items, failure, reload, order, view, user }}
        onOrder={setOrder}
        onView={setView}
        onFiles={(files) => queue.add(files, path)}
      />
      <UploadPanel uploads={uploads} queue={queue} />
    </>
  );
}

interface FolderPageProps extends Folder {
  readonly path: string;
  readonly open: (path: string) => void;
  readonly order: Order;
  readonly view: View;
  /** `undefined` on a drive without a login. */
  readonly user: string | undefined;
  readonly onOrder: (order: Order) => void;
  readonly onView: (view: View) => void;
  readonly onFiles: (files: readonly NewFile[]) => void;
}

/** One folder, and what can be done with its files. Another folder is another page: nothing selected is left over. */
function FolderPage(props: FolderPageProps) {
  const { path, open, items, failure, reload, order, view, onFiles } = props;
  const [filter, setFilter] = useState('');
  const [selection, setSelection] = useState<Selection>(NOTHING_SELECTED);
  const [asked, setAsked] = useState<Asked>();
  const [previewed, setPreviewed] = useState<Item>();
  const [problem, setProblem] = useState<string>();
  const shown = useMemo(() => arranged(items ?? [], order, filter), [items, order, filter]);
  const chosen = shown.filter(({ name }) => selection.names.has(name));

  const openItem = (item: Item) => (item.kind === 'folder' ? open(item.path) : setPreviewed(item));
  const names = shown.map(({ name }) => name);
  const select = (item: Item, keys: Keys) => setSelection(selected(selection, names, item.name, keys));
  const selectAll = (isAll: boolean) =>
    setSelection(isAll ? { ...selection, names: new Set(names) } : NOTHING_SELECTED);

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
  const run = (command: Command) => {
    if (command === 'download') for (const item of chosen) download(item);
    else setAsked(command);
  };

  useKeys({ shown, selection, chosen, select, selectAll, openItem, run, open, clear: setSelection });

  return (
    <DropArea path={path} onFiles={onFiles}>
      <header class="page">
        <h1 class="unseen">{nameOf(path) || t('drive')}</h1>
        <Breadcrumbs path={path} onOpen={open} />
        <Toolbar
          selectedCount={chosen.length}
          hasFolder={chosen.some(({ kind }) => kind === 'folder')}
          view={view}
          filter={filter}
          onCommand={run}
          onClear={() => setSelection(NOTHING_SELECTED)}
          onFiles={(files) => onFiles(filesOf(files, path))}
          onView={props.onView}
          onFilter={setFilter}
        />
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
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
              const isSelected = selection.names.has(item.name);
              if (!isSelected) setSelection(selected(selection, names, item.name, NO_KEYS));
              data.setData(DRAGGED_TYPE, '');
              data.effectAllowed = 'move';
            }}
            onMoveInto={(folder) => void relocateTo('MOVE', folder)}
          />
        )}
        {shown.length === 0 && <Empty {...{ items, failure, filter, reload }} />}
      </main>
      <footer class="page">
        <span class="count">
          {items &&
            (shown.length === items.length
              ? t('items', items.length)
              : t('itemsOf', shown.length, items.length))}
        </span>
        {props.user !== undefined && <span>{t('signedInAs', props.user)}</span>}
      </footer>
      <Asking
        {...{ asked, path, chosen, relocateTo }}
        onDone={reload}
        onClose={() => setAsked(undefined)}
        onRemove={() => void forEach(chosen, 'changedMeanwhile', remove)}
      />
      {previewed && (
        <Preview
          item={previewed}
          onStep={(by) => setPreviewed(neighbour(shown, previewed, by))}
          onClose={() => setPreviewed(undefined)}
        />
      )}
    </DropArea>
  );
}

const NO_KEYS: Keys = { toggles: false, extends: false };

interface EmptyProps {
  readonly items: readonly Item[] | undefined;
  readonly failure: string | undefined;
  readonly filter: string;
  readonly reload: () => void;
}

/** What stands in place of the list. */
function Empty({ items, failure, filter, reload }: EmptyProps) {
  if (failure !== undefined)
    return (
      <div class="note" role="alert">
        <p>{t('cannotList')}</p>
        <p>{failure}</p>
        <button type="button" class="button" onClick={reload}>
          {t('retry')}
        </button>
      </div>
    );
  if (!items) return <p class="note">{t('loading')}</p>;
  if (filter !== '') return <p class="note">{t('noMatch', filter)}</p>;
  return (
    <div class="note">
      <p>{t('emptyFolder')}</p>
      <p>{t('emptyHint')}</p>
    </div>
  );
}

function nextOrder(order: Order, by: Column): Order {
  return { by, isDescending: order.by === by ? !order.isDescending : by !== 'name' };
}

/** Returns the next or previous file. */
function neighbour(items: readonly Item[], item: Item, by: 1 | -1): Item {
  const files = items.filter(({ kind }) => kind === 'file');
  const index = files.findIndex(({ name }) => name === item.name);
  return files[(index + by + files.length) % files.length] ?? item;
}

function download({ path, name }: Item): void {
  const link = document.createElement('a');
  link.href = addressOf(path, 'file');
  link.download = name;
  link.click();
}
