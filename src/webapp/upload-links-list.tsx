import { useState } from 'preact/hooks';
import { DavFailure } from './dav.ts';
import { ConfirmDialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { sizeText, timeText } from './format.ts';
import { ask, call } from './gateway.ts';
import { ItemIcon } from './icons.tsx';
import { t } from './messages.ts';
import { addressOf, nameOf } from './paths.ts';
import { useAnswer } from './use-answer.ts';

/** A link by which others send files into a folder. */
interface UploadLink {
  readonly id: string;
  readonly label: string;
  readonly path: string;
  readonly hasPassword: boolean;
  /** Milliseconds since 1970. */
  readonly expiresMs?: number;
  readonly sizeBytesMax?: number;
  readonly usedBytes: number;
}

const load = async (signal: AbortSignal) =>
  (await ask<{ readonly links: readonly UploadLink[] }>('upload-links', {}, signal)).links;

/** The user's links by which others send files. */
export function UploadLinksList({ onOpen }: { readonly onOpen: (folder: string) => void }) {
  const { answer: links, failure, reload } = useAnswer(load);
  const [ending, setEnding] = useState<UploadLink>();
  const [problem, setProblem] = useState<string>();
  const end = async ({ id }: UploadLink) => {
    setProblem(undefined);
    try {
      await call('end-upload-link', { id });
    } catch (error) {
      // One that is gone has ended, which is what was wanted.
      if (!(error instanceof DavFailure && error.status === 404)) setProblem(failureText(error));
    }
    reload();
  };
  return (
    <>
      <h3>{t('uploadLinks')}</h3>
      {[problem, failure].map(
        (text) =>
          text !== undefined && (
            <p key={text} class="problem" role="alert">
              {text}
            </p>
          ),
      )}
      {links?.length === 0 && <p>{t('noUploadLinks')}</p>}
      {links && links.length > 0 && (
        <ul class="links">
          {links.map((link) => (
            <Line key={link.id} link={link} onOpen={onOpen} onEnd={() => setEnding(link)} />
          ))}
        </ul>
      )}
      {ending && (
        <ConfirmDialog
          title={t('endUploadLinkTitle', ending.label)}
          text={t('endUploadLinkWarning')}
          action={t('endUploadLink')}
          onConfirm={() => void end(ending)}
          onClose={() => setEnding(undefined)}
        />
      )}
    </>
  );
}

interface LineProps {
  readonly link: UploadLink;
  readonly onOpen: (folder: string) => void;
  readonly onEnd: () => void;
}

function Line({ link, onOpen, onEnd }: LineProps) {
  const { label, path, hasPassword, expiresMs, sizeBytesMax, usedBytes } = link;
  const used = sizeText(usedBytes);
  const facts = [
    t(hasPassword ? 'withPassword' : 'forEveryone'),
    expiresMs === undefined ? t('withoutEnd') : t('endsOn', timeText(expiresMs)),
    sizeBytesMax === undefined ? t('received', used) : t('receivedOf', used, sizeText(sizeBytesMax)),
  ];
  return (
    <li>
      <ItemIcon item={{ kind: 'folder', path, name: nameOf(path) }} />
      <div class="about">
        <span>{label}</span>
        <a
          href={addressOf(path, 'folder')}
          onClick={(event) => {
            if (event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            onOpen(path);
          }}
        >
          {path}
        </a>
        <span class="soft">{facts.join(', ')}</span>
      </div>
      <div class="actions">
        <button type="button" class="button danger" aria-label={t('endUploadLinkOf', label)} onClick={onEnd}>
          {t('endUploadLink')}
        </button>
      </div>
    </li>
  );
}
