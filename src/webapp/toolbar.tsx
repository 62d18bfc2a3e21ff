import { useEffect, useRef } from 'preact/hooks';
import type { Command } from './commands.ts';
import type { View } from './file-list.tsx';
import { Sign, type SignName } from './icons.tsx';
import { isTyping } from './keys.ts';
import { t } from './messages.ts';

interface Props {
  readonly selectedCount: number;
  /** Whether the user may change the folder, or the selection. */
  readonly canChange: boolean;
  /** Whether what was deleted from the folder can be restored. */
  readonly hasTrash: boolean;
  /** Whether the selection is one file. */
  readonly hasVersions: boolean;
  /** Whether others may be asked for files in the selection. */
  readonly canReceive: boolean;
  readonly view: View;
  readonly filter: string;
  readonly onCommand: (command: Command) => void;
  readonly onClear: () => void;
  readonly onFiles: (files: FileList) => void;
  readonly onView: (view: View) => void;
  readonly onFilter: (filter: string) => void;
  /** Searches the whole drive for the filter. */
  readonly onSearch: () => void;
}

/** The buttons of the folder, or those of the selection. */
export function Toolbar(props: Props) {
  const { selectedCount, canChange, hasTrash, hasVersions, canReceive, view, filter } = props;
  const { onCommand, onClear, onView, onFilter, onSearch } = props;
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      if (event.key !== '/' || isTyping(event.target)) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener('keydown', focus);
    return () => removeEventListener('keydown', focus);
  }, []);
  return (
    <div class="toolbar">
      {selectedCount === 0 ? (
        <div class="actions">
          {canChange && (
            <>
              <UploadButton {...props} />
              <Action sign="folder" label={t('newFolder')} onPress={() => onCommand('new-folder')} />
              <Action sign="text" label={t('newText')} onPress={() => onCommand('new-text')} />
              {hasTrash && <Action sign="trash" label={t('trash')} onPress={() => onCommand('trash')} />}
            </>
          )}
        </div>
      ) : (
        <div class="actions chosen">
          <button type="button" class="button plain" aria-label={t('clearSelection')} onClick={onClear}>
            <Sign name="close" />
          </button>
          <span class="count" role="status">
            {selectedCount === 1 ? t('selectedOne') : t('selectedMany', selectedCount)}
          </span>
          <Action sign="download" label={t('download')} onPress={() => onCommand('download')} />
          {canChange && selectedCount === 1 && (
            <>
              <Action sign="rename" label={t('rename')} onPress={() => onCommand('rename')} />
              <Action sign="share" label={t('share')} onPress={() => onCommand('share')} />
            </>
          )}
          {canReceive && <Action sign="inbox" label={t('receive')} onPress={() => onCommand('receive')} />}
          {canChange && (
            <>
              <Action sign="move" label={t('moveTo')} onPress={() => onCommand('move')} />
              <Action sign="copy" label={t('copyTo')} onPress={() => onCommand('copy')} />
            </>
          )}
          {hasVersions && (
            <Action sign="versions" label={t('versions')} onPress={() => onCommand('versions')} />
          )}
          {canChange && <Action sign="remove" label={t('remove')} onPress={() => onCommand('remove')} />}
        </div>
      )}
      <input
        ref={field}
        type="search"
        class="filter"
        placeholder={t('filter')}
        aria-label={t('filter')}
        value={filter}
        onInput={(event) => onFilter(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') onSearch();
          if (event.key !== 'Escape') return;
          onFilter('');
          event.currentTarget.blur();
        }}
      />
      <div class="views">
        {(['list', 'grid'] as const).map((each) => (
          <button
            type="button"
            key={each}
            aria-label={t(each)}
            aria-pressed={view === each}
            onClick={() => onView(each)}
          >
            <Sign name={each} />
          </button>
        ))}
      </div>
    </div>
  );
}

interface ActionProps {
  readonly sign: SignName;
  readonly label: string;
  /** A number on the sign. */
  readonly badge?: string | undefined;
  readonly onPress: () => void;
}

/** A button with a sign; narrow screens show the sign alone. */
export function Action({ sign, label, badge, onPress }: ActionProps) {
  // It names a button whose label has no room.
  const title = badge === undefined ? label : `${label}: ${badge}`;
  return (
    <button type="button" class="button" title={title} onClick={onPress}>
      <Sign name={sign} />
      <span class="label">{label}</span>
      {badge !== undefined && (
        <span class="badge" aria-hidden="true">
          {badge}
        </span>
      )}
    </button>
  );
}

/** Uploads files; a second button takes a whole folder. */
function UploadButton({ onFiles }: Pick<Props, 'onFiles'>) {
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  useEffect(() => folder.current?.setAttribute('webkitdirectory', ''), []);
  const take = (input: HTMLInputElement) => {
    if (input.files) onFiles(input.files);
    // Otherwise the same file could not be chosen again.
    input.value = '';
  };
  return (
    <>
      <button type="button" class="button primary" onClick={() => files.current?.click()}>
        <Sign name="upload" />
        {t('upload')}
      </button>
      <Action sign="upload" label={t('uploadFolder')} onPress={() => folder.current?.click()} />
      <input
        ref={files}
        type="file"
        multiple
        hidden
        aria-label={t('uploadFiles')}
        onChange={(event) => take(event.currentTarget)}
      />
      <input
        ref={folder}
        type="file"
        hidden
        aria-label={t('uploadFolder')}
        onChange={(event) => take(event.currentTarget)}
      />
    </>
  );
}
