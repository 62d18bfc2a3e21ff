import type { Asked } from './commands.ts';
import { createFolder, DavFailure, type Item, relocate } from './dav.ts';
import { ConfirmDialog, NameDialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { FolderDialog } from './folder-dialog.tsx';
import { t } from './messages.ts';
import type { How } from './operations.ts';
import { join, nameOf, parentOf } from './paths.ts';
import { ShareDialog } from './share-dialog.tsx';
import { createTextFile } from './text-file.ts';
import { TrashDialog } from './trash-dialog.tsx';
import { UploadLinkDialog } from './upload-link-dialog.tsx';
import { VersionsDialog } from './versions-dialog.tsx';

interface AskingProps {
  readonly asked: Asked;
  readonly path: string;
  /** The items that were selected when the command was given. */
  readonly items: readonly Item[];
  /** Whether a deletion can be undone. */
  readonly keepsDeleted: boolean;
  /** Whether the user may change the selected items. */
  readonly canChange: boolean;
  readonly onRelocate: (how: How, folder: string) => void;
  readonly onDone: () => void;
  readonly onClose: () => void;
  readonly onRemove: () => void;
  /** Opens a new text file. */
  readonly onEdit: (path: string) => void;
}

/** The dialog of the command that needs an answer. */
export function Asking(props: AskingProps) {
  const { asked, path, items, keepsDeleted, canChange } = props;
  const { onRelocate, onDone, onClose, onRemove, onEdit } = props;
  const [only] = items;
  /** Returns why `work` failed, in words for the name that was given. */
  const tried = async (name: string, work: () => Promise<void>): Promise<string | undefined> => {
    try {
      await work();
      onDone();
      return undefined;
    } catch (error) {
      const isTaken = error instanceof DavFailure && (error.status === 405 || error.status === 412);
      return isTaken ? t('nameTaken', name) : failureText(error);
    }
  };
  if (asked === 'new-folder')
    return (
      <NameDialog
        title={t('newFolder')}
        label={t('newFolderName')}
        action={t('create')}
        name=""
        onName={(name) => tried(name, () => createFolder(join(path, name)))}
        onClose={onClose}
      />
    );
  if (asked === 'new-text')
    return (
      <NameDialog
        title={t('newText')}
        label={t('newTextName')}
        action={t('create')}
        name=""
        onName={async (name) => {
          const made = join(path, name.includes('.') ? name : `${name}.txt`);
          const failure = await tried(nameOf(made), () => createTextFile(made));
          if (failure === undefined) onEdit(made);
          return failure;
        }}
        onClose={onClose}
      />
    );
  if (asked === 'trash') return <TrashDialog folder={path} onRestored={onDone} onClose={onClose} />;
  if (!only) return null;
  if (asked === 'versions')
    return <VersionsDialog item={only} canRestore={canChange} onRestored={onDone} onClose={onClose} />;
  if (asked === 'share') return <ShareDialog item={only} onClose={onClose} />;
  if (asked === 'receive') return <UploadLinkDialog folder={only.path} onClose={onClose} />;
  if (asked === 'rename')
    return (
      <NameDialog
        title={t('rename')}
        label={t('newName')}
        action={t('rename')}
        name={only.name}
        onName={(name) => tried(name, () => relocate('MOVE', only, join(parentOf(only.path), name)))}
        onClose={onClose}
      />
    );
  if (asked === 'remove')
    return (
      <ConfirmDialog
        title={items.length === 1 ? t('removeOne', only.name) : t('removeMany', items.length)}
        text={t(keepsDeleted ? 'removeKept' : 'removeWarning')}
        action={t('remove')}
        onConfirm={onRemove}
        onClose={onClose}
      />
    );
  const how = asked === 'move' ? 'MOVE' : 'COPY';
  return (
    <FolderDialog
      how={how}
      items={items}
      start={path}
      onChoose={(folder) => onRelocate(how, folder)}
      onClose={onClose}
    />
  );
}
