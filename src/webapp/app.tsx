import { useState } from 'preact/hooks';
import { concerns, useChanges } from './changes.ts';
import type { View } from './file-list.tsx';
import { useFolder, usePath } from './folder.ts';
import { FolderPage } from './folder-page.tsx';
import { useKeptWrites } from './kept-writes.ts';
import { useLocks } from './locks.ts';
import type { Order } from './order.ts';
import { SignInAgain } from './sign-in-dialog.tsx';
import { useUndo } from './undo.tsx';
import { UploadPanel } from './upload-panel.tsx';
import { useDrive } from './use-drive.ts';
import { useUploads } from './use-uploads.ts';

/** The drive in a browser: one folder at a time, and the uploads into all of them. */
export function App() {
  const [path, open] = usePath();
  const folder = useFolder(path);
  const [order, setOrder] = useState<Order>({ by: 'name', isDescending: false });
  const [view, setView] = useState<View>('list');
  const [uploads, queue] = useUploads(path, folder.reload);
  const drive = useDrive();
  const undo = useUndo(folder.reload);
  const locks = useLocks(path);
  const kept = useKeptWrites(drive.keepsWrites);
  useChanges((changes) => {
    if (concerns(changes, path)) folder.refresh();
    if (changes.locks) locks.reload();
    if (changes.writes) kept.reload();
  });
  return (
    <>
      <FolderPage
        key={path}
        {...{ path, open, folder, order, view, drive, undo, locks, kept }}
        onOrder={setOrder}
        onView={setView}
        onFiles={(files) => queue.add(files, path)}
      />
      <UploadPanel uploads={uploads} queue={queue} />
      <SignInAgain />
    </>
  );
}
