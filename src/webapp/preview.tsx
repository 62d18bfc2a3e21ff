import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Item } from './dav.ts';
import { sizeText } from './format.ts';
import { Sign } from './icons.tsx';
import { kindOf } from './kinds.ts';
import { t } from './messages.ts';
import { addressOf } from './paths.ts';
import { TEXT_BYTES_MAX } from './text-file.ts';
import { TextPreview } from './text-preview.tsx';

interface Props {
  readonly item: Item;
  /** The heading of a document that is shown first. */
  readonly section: string | undefined;
  /** Opens the file or folder that a document's link leads to. */
  readonly onFollow: (item: Item, section: string | undefined) => void;
  readonly onStep: (by: 1 | -1) => void;
  /** Absent if the user may not change the file. */
  readonly onEdit: (() => void) | undefined;
  readonly onClose: () => void;
}

/** Shows one file over the page; the arrow keys go on to the next. */
export function Preview({ item, section, onFollow, onStep, onEdit, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isEditable = onEdit && kindOf(item.name) === 'text' && isShort(item);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      class="preview"
      aria-label={item.name}
      onClose={onClose}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.target instanceof HTMLMediaElement) return;
        if (event.key === 'ArrowRight') onStep(1);
        if (event.key === 'ArrowLeft') onStep(-1);
      }}
    >
      <header>
        <h2>{item.name}</h2>
        <span class="size">{sizeText(item.sizeBytes ?? 0)}</span>
        {isEditable && (
          <button type="button" class="button" onClick={onEdit}>
            <Sign name="rename" />
            {t('edit')}
          </button>
        )}
        <a class="button" href={addressOf(item.path, 'file')} download={item.name}>
          <Sign name="download" />
          {t('download')}
        </a>
        <button type="button" class="button plain" aria-label={t('previous')} onClick={() => onStep(-1)}>
          <Sign name="previous" />
        </button>
        <button type="button" class="button plain" aria-label={t('next')} onClick={() => onStep(1)}>
          <Sign name="next" />
        </button>
        <button
          type="button"
          class="button plain"
          aria-label={t('close')}
          onClick={() => dialog.current?.close()}
        >
          <Sign name="close" />
        </button>
      </header>
      <div class="stage">
        <Content key={item.path} {...{ item, section, onFollow }} />
      </div>
    </dialog>
  );
}

function Content({ item, section, onFollow }: Pick<Props, 'item' | 'section' | 'onFollow'>) {
  const source = addressOf(item.path, 'file');
  const kind = kindOf(item.name);
  if (kind === 'image') return <img src={source} alt={item.name} />;
  // biome-ignore lint/a11y/useMediaCaption: files of a drive come without captions
  if (kind === 'video') return <video src={source} controls />;
  // biome-ignore lint/a11y/useMediaCaption: see above
  if (kind === 'audio') return <audio src={source} controls />;
  if (kind === 'pdf' && navigator.pdfViewerEnabled)
    return <iframe src={source} title={item.name} class="document" />;
  if (kind === 'text' && isShort(item)) return <TextPreview {...{ item, section, onFollow }} />;
  if (kind === 'text') return <p class="note">{t('tooLargeToShow')}</p>;
  return <p class="note">{t('noPreview')}</p>;
}

function isShort({ sizeBytes = 0 }: Item): boolean {
  return sizeBytes <= TEXT_BYTES_MAX;
}
