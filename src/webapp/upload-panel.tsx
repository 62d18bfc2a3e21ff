import { sizeText } from './format.ts';
import { Sign } from './icons.tsx';
import { t } from './messages.ts';
import { nameOf } from './paths.ts';
import { isOpen, type Upload, type Uploads } from './uploads.ts';

interface Props {
  readonly uploads: readonly Upload[];
  readonly queue: Uploads;
}

/** What is being uploaded, and what came of it. */
export function UploadPanel({ uploads, queue }: Props) {
  if (uploads.length === 0) return null;
  const open = uploads.filter(isOpen);
  const failed = uploads.filter(({ state }) => state === 'failed').length;
  const done = uploads.filter(({ state }) => state === 'done').length;
  const sum = (of: (upload: Upload) => number) => uploads.reduce((bytes, each) => bytes + of(each), 0);
  const title =
    open.length > 0
      ? t('uploading', done + 1, uploads.length)
      : failed > 0
        ? t('uploadedWithFailures', done, failed)
        : t('uploaded', done);
  return (
    <section class="uploads" aria-label={t('uploads')}>
      <header>
        <strong role="status">{title}</strong>
        {open.length > 0 ? (
          <button type="button" class="button" onClick={() => open.map(({ id }) => queue.cancel(id))}>
            {t('cancel')}
          </button>
        ) : (
          <button type="button" class="button plain" aria-label={t('close')} onClick={() => queue.clear()}>
            <Sign name="close" />
          </button>
        )}
      </header>
      {open.length > 0 && (
        <progress
          aria-label={t('uploads')}
          max={Math.max(
            1,
            sum(({ sizeBytes }) => sizeBytes),
          )}
          value={sum(({ sentBytes }) => sentBytes)}
        />
      )}
      <ul>
        {uploads.map((upload) => (
          <Line key={upload.id} upload={upload} queue={queue} />
        ))}
      </ul>
    </section>
  );
}

function Line({ upload, queue }: { readonly upload: Upload; readonly queue: Uploads }) {
  const { id, path, state, sizeBytes, sentBytes, failure } = upload;
  const name = nameOf(path);
  return (
    <li class={state}>
      <span class="name">{name}</span>
      {state === 'sending' && (
        <progress aria-label={name} max={Math.max(1, sizeBytes)} value={Math.min(sentBytes, sizeBytes)} />
      )}
      {state === 'exists' && <span class="problem">{t('existsAlready', name)}</span>}
      {failure !== undefined && <span class="problem">{failure}</span>}
      <span class="state">{stateText(upload)}</span>
      {state === 'exists' && (
        <>
          <button type="button" class="button" onClick={() => queue.settle(id, 'replace')}>
            {t('replace')}
          </button>
          <button type="button" class="button" onClick={() => queue.settle(id, 'keep-both')}>
            {t('keepBoth')}
          </button>
          <button type="button" class="button" onClick={() => queue.cancel(id)}>
            {t('skip')}
          </button>
        </>
      )}
      {(state === 'failed' || state === 'stopped') && (
        <button type="button" class="button plain" aria-label={t('retry')} onClick={() => queue.retry(id)}>
          <Sign name="retry" />
        </button>
      )}
      {(state === 'sending' || state === 'waiting') && (
        <button type="button" class="button plain" aria-label={t('cancel')} onClick={() => queue.cancel(id)}>
          <Sign name="close" />
        </button>
      )}
    </li>
  );
}

function stateText({ state, sizeBytes, sentBytes, isReconnecting = false }: Upload): string {
  if (isReconnecting) return t('reconnecting');
  if (state === 'waiting') return t('waiting');
  if (state === 'done') return t('done');
  if (state === 'stopped') return t('stopped');
  if (state !== 'sending') return '';
  return sentBytes > 0 ? t('sentOf', sizeText(sentBytes), sizeText(sizeBytes)) : sizeText(sizeBytes);
}
