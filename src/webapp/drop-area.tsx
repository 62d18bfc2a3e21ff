import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useState } from 'preact/hooks';
import { filesIn } from './dropped.ts';
import { isTyping } from './keys.ts';
import { t } from './messages.ts';
import { nameOf } from './paths.ts';
import type { NewFile } from './uploads.ts';

interface DropAreaProps {
  readonly path: string;
  /** Absent where the user may add nothing. */
  readonly onFiles: ((files: readonly NewFile[]) => void) | undefined;
  readonly children: ComponentChildren;
}

/** Takes files that are dropped anywhere on the page, or pasted. */
export function DropArea({ path, onFiles, children }: DropAreaProps) {
  const [isOver, setOver] = useState(false);
  const take = useCallback(
    (data: DataTransfer | null) => {
      if (data && onFiles) void filesIn(data, path).then((files) => files.length > 0 && onFiles(files));
    },
    [path, onFiles],
  );
  useEffect(() => {
    const paste = (event: ClipboardEvent) => !isTyping(event.target) && take(event.clipboardData);
    addEventListener('paste', paste);
    return () => removeEventListener('paste', paste);
  }, [take]);
  const hasFiles = (event: DragEvent) => onFiles && event.dataTransfer?.types.includes('Files') === true;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the buttons for uploads do the same
    <div
      class="app"
      onDragOver={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => event.relatedTarget === null && setOver(false)}
      onDrop={(event) => {
        if (!hasFiles(event)) return;
        event.preventDefault();
        setOver(false);
        take(event.dataTransfer);
      }}
    >
      {children}
      {isOver && <div class="drop">{t('dropHere', nameOf(path) || t('drive'))}</div>}
    </div>
  );
}
