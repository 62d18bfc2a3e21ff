import { useState } from 'preact/hooks';
import { CopyButton } from './copy-button.tsx';
import { DavFailure } from './dav.ts';
import { Dialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { timeText } from './format.ts';
import { ItemIcon } from './icons.tsx';
import { t } from './messages.ts';
import { addressOf, nameOf, parentOf } from './paths.ts';
import { StopDialog } from './share-dialog.tsx';
import { type LinkedItem, unshare, useLinks } from './shared-links.ts';
import { UploadLinksList } from './upload-links-list.tsx';
import { type Drive, mayChangeItem } from './use-drive.ts';

interface Props {
  readonly drive: Drive;
  readonly onOpen: (folder: string) => void;
  readonly onClose: () => void;
}

/** All shared links of the drive. */
export function LinksDialog({ drive, onOpen, onClose }: Props) {
  const { links, failure, show, reload } = useLinks();
  const [stopping, setStopping] = useState<LinkedItem>();
  const [problem, setProblem] = useState<string>();
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  const sorted = links && [...links].sort((one, other) => compare(one.path, other.path));

  const stop = async ({ path, url }: LinkedItem) => {
    setProblem(undefined);
    try {
      await unshare(path, url);
    } catch (error) {
      // A link that is gone has ended, which is what was wanted.
      const isGone = error instanceof DavFailure && error.status === 404;
      if (!isGone) return setProblem(t('failedTo', nameOf(path), failureText(error)));
    }
    show((links ?? []).filter((link) => link.url !== url));
  };

  return (
    <>
      <Dialog title={t('sharedLinks')} isWide onClose={onClose}>
        {!links && failure === undefined && <p>{t('loading')}</p>}
        {failure !== undefined && (
          <p class="problem" role="alert">
            {failure}
          </p>
        )}
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        {sorted?.length === 0 && <p>{t('nothingShared')}</p>}
        {sorted && sorted.length > 0 && (
          <ul class="links">
            {sorted.map((link) => (
              <Line
                key={link.url}
                link={link}
                onOpen={onOpen}
                onStop={mayChangeItem(drive, link.path) ? () => setStopping(link) : undefined}
              />
            ))}
          </ul>
        )}
        {drive.hasUploadLinks && <UploadLinksList onOpen={onOpen} />}
        <div class="actions">
          {failure !== undefined && (
            <button type="button" class="button" onClick={reload}>
              {t('retry')}
            </button>
          )}
          <button type="button" class="button" onClick={onClose}>
            {t('close')}
          </button>
        </div>
      </Dialog>
      {stopping && (
        <StopDialog
          name={nameOf(stopping.path)}
          onConfirm={() => void stop(stopping)}
          onClose={() => setStopping(undefined)}
        />
      )}
    </>
  );
}

interface LineProps {
  readonly link: LinkedItem;
  readonly onOpen: (folder: string) => void;
  readonly onStop: (() => void) | undefined;
}

function Line({ link, onOpen, onStop }: LineProps) {
  const { kind, path, url, visibility, expiresMs } = link;
  const folder = parentOf(path);
  return (
    <li>
      <ItemIcon item={{ kind, path, name: nameOf(path) }} />
      <div class="about">
        <a
          href={addressOf(folder, 'folder')}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            onOpen(folder);
          }}
        >
          {path}
        </a>
        <span class="soft">
          {t(visibility === 'password' ? 'withPassword' : 'forEveryone')},{' '}
          {expiresMs === undefined ? t('withoutEnd') : t('endsOn', timeText(expiresMs))}
        </span>
      </div>
      <div class="actions">
        <CopyButton text={url} />
        {onStop && (
          <button type="button" class="button danger" onClick={onStop}>
            {t('stopSharing')}
          </button>
        )}
      </div>
    </li>
  );
}
