import { useRef, useState } from 'preact/hooks';
import { concerns, useChanges } from './changes.ts';
import { DropArea } from './drop-area.tsx';
import { Editor } from './editor.tsx';
import type { View } from './file-list.tsx';
import { useFolder, usePath } from './folder.ts';
import { FolderPage } from './folder-page.tsx';
import { useKeptWrites } from './kept-writes.ts';
import { useLocks } from './locks.ts';
import { useOperations } from './operations.ts';
import type { Order } from './order.ts';
import { SignInAgain } from './sign-in-dialog.tsx';
import { TakenDialog } from './taken-dialog.tsx';
import { useUndo } from './undo.tsx';
import { UploadPanel } from './upload-panel.tsx';
import type { NewFile } from './uploads.ts';
import { mayChange, useDrive } from './use-drive.ts';
import { useUploads } from './use-uploads.ts';

/** The drive in a browser: one folder at a time, and the uploads into all of them. */
export function App() {
  const [path, open] = usePath();
  const folder = useFolder(path);
  const [order, setOrder] = useState<Order>({ by: 'name', isDescending: false });
  const [view, setView] = useState<View>('list');
  /** Lists again what the page shows: its folder, or what it has found. */
  const relist = useRef(folder.reload);
  const [edited, setEdited] = useState<string>();
  const [uploads, queue] = useUploads(path, folder.reload);
  const drive = useDrive();
  const operations = useOperations(() => relist.current(), drive);
  const undo = useUndo(() => relist.current());
  const locks = useLocks(path);
  const kept = useKeptWrites(drive.keepsWrites);
  useChanges((changes) => {
    if (concerns(changes, path)) folder.refresh();
    if (changes.locks) locks.reload();
    if (changes.writes) kept.reload();
  });
  const addFiles = (files: readonly NewFile[]) => queue.add(files, path);
  return (
    <>
      <DropArea path={path} onFiles={mayChange(drive, path) ? addFiles : undefined}>
        <FolderPage
          key={path}
          {...{ path, open, folder, relist, order, view, drive, operations, undo, locks, kept }}
          onOrder={setOrder}
          onView={setView}
          onFiles={addFiles}
          // A file that was created slowly must not take the place of another one's text.
          onEdit={(file) => setEdited((before) => before ?? file)}
        />
        {operations.taken && <TakenDialog key={operations.taken} taken={operations.taken} />}
        {edited !== undefined && (
          <Editor path={edited} onSaved={() => relist.current()} onClose={() => setEdited(undefined)} />
        )}
      </DropArea>
      <UploadPanel uploads={uploads} queue={queue} />
      <SignInAgain />
    </>
  );
}
