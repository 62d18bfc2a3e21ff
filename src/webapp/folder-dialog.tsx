import { useState } from 'preact/hooks';
import { Breadcrumbs } from './breadcrumbs.tsx';
import { createFolder, DavFailure, type Item } from './dav.ts';
import { Dialog, NameDialog } from './dialogs.tsx';
import { failureText, useFolder } from './folder.ts';
import { ItemIcon, Sign } from './icons.tsx';
import { t } from './messages.ts';
import type { How } from './operations.ts';
import { join, parentOf } from './paths.ts';

interface Props {
  readonly how: How;
  /** The items to move or copy. */
  readonly items: readonly Item[];
  /** The folder that is open at first. */
  readonly start: string;
  readonly onChoose: (folder: string) => void;
  readonly onClose: () => void;
}

/** Lets a person choose the folder of the drive into which items are moved or copied, or make a new one. */
export function FolderDialog({ how, items, start, onChoose, onClose }: Props) {
  const [path, setPath] = useState(start);
  const [isNaming, setNaming] = useState(false);
  const { items: listed, failure, reload } = useFolder(path);
  const moved = new Set(items.map((item) => item.path));
  // A folder cannot be moved or copied into itself.
  const folders = listed?.filter(({ kind, path: each }) => kind === 'folder' && !moved.has(each));
  const isThere = items.every((item) => parentOf(item.path) === path);
  return (
    <>
      <Dialog title={titleOf(how, items)} onClose={onClose}>
        <Breadcrumbs path={path} onOpen={setPath} />
        <ul class="folders">
          {folders?.map((folder) => (
            <li key={folder.name}>
              <button type="button" onClick={() => setPath(folder.path)}>
                <ItemIcon item={folder} />
                {folder.name}
              </button>
            </li>
          ))}
          {folders?.length === 0 && <li class="soft">{t('noFolders')}</li>}
          {!listed && failure === undefined && <li class="soft">{t('loading')}</li>}
        </ul>
        {failure !== undefined && (
          <p class="problem" role="alert">
            {failure}
          </p>
        )}
        <div class="actions">
          <button type="button" class="button first" onClick={() => setNaming(true)}>
            <Sign name="folder" />
            {t('newFolder')}
          </button>
          <button type="button" class="button" onClick={onClose}>
            {t('cancel')}
          </button>
          <button
            type="button"
            class="button primary"
            disabled={isThere}
            onClick={() => {
              onChoose(path);
              onClose();
            }}
          >
            {t(how === 'MOVE' ? 'moveHere' : 'copyHere')}
          </button>
        </div>
      </Dialog>
      {isNaming && (
        <NameDialog
          title={t('newFolder')}
          label={t('newFolderName')}
          action={t('create')}
          name=""
          onName={async (name) => {
            const failed = await made(join(path, name), name);
            if (failed === undefined) setPath(join(path, name));
            return failed;
          }}
          onClose={() => {
            setNaming(false);
            reload();
          }}
        />
      )}
    </>
  );
}

function titleOf(how: How, items: readonly Item[]): string {
  const [first] = items;
  if (items.length === 1 && first) return t(how === 'MOVE' ? 'moveOne' : 'copyOne', first.name);
  return t(how === 'MOVE' ? 'moveMany' : 'copyMany', items.length);
}

/** Makes a folder. Returns why it could not be made. */
async function made(path: string, name: string): Promise<string | undefined> {
  try {
    await createFolder(path);
    return undefined;
  } catch (error) {
    const isTaken = error instanceof DavFailure && error.status === 405;
    return isTaken ? t('nameTaken', name) : failureText(error);
  }
}
