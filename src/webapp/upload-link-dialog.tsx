import { useId, useState } from 'preact/hooks';
import { DavFailure } from './dav.ts';
import { Dialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { sizeText } from './format.ts';
import { call } from './gateway.ts';
import { LinkAddress } from './link-address.tsx';
import { t } from './messages.ts';
import { nameOf } from './paths.ts';
import { dayOf, endOf } from './shared-links.ts';

/** The limits that a person can choose, in bytes. */
const SIZES = [100e6, 1e9, 10e9, 100e9];

interface Props {
  readonly folder: string;
  readonly onClose: () => void;
}

/** Makes a link by which others send files into a folder, and shows it once. */
export function UploadLinkDialog({ folder, onClose }: Props) {
  const [label, setLabel] = useState(nameOf(folder));
  const [wantsPassword, setWantsPassword] = useState(false);
  const [password, setPassword] = useState('');
  const [lastDay, setLastDay] = useState('');
  const [size, setSize] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [url, setUrl] = useState<string>();
  const ids = { label: useId(), password: useId(), day: useId(), size: useId() };

  const make = async () => {
    if (wantsPassword && password === '') return setProblem(t('passwordMissing'));
    setBusy(true);
    setProblem(undefined);
    try {
      const values = { path: folder, label: label.trim() || nameOf(folder), size };
      const kept = { password: wantsPassword ? password : '', expires: lastDay && endOf(lastDay) };
      setUrl((await call<{ readonly url: string }>('make-upload-link', { ...values, ...kept })).url);
    } catch (error) {
      const isFull = error instanceof DavFailure && error.status === 409;
      setProblem(isFull ? t('tooManyUploadLinks') : failureText(error));
    }
    setBusy(false);
  };

  if (url !== undefined)
    return (
      <Dialog title={t('receiveTitle', nameOf(folder))} onClose={onClose}>
        <p role="status">{t('uploadLinkMade')}</p>
        <LinkAddress url={url} />
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {t('close')}
          </button>
        </div>
      </Dialog>
    );
  return (
    <Dialog title={t('receiveTitle', nameOf(folder))} onClose={onClose}>
      <p>{t('receiveReason')}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <label for={ids.label}>{t('uploadLinkLabel')}</label>
        <input
          id={ids.label}
          value={label}
          maxLength={100}
          autocomplete="off"
          onInput={(event) => setLabel(event.currentTarget.value)}
        />
        <label class="check">
          <input
            type="checkbox"
            checked={wantsPassword}
            onChange={(event) => setWantsPassword(event.currentTarget.checked)}
          />
          {t('askForPassword')}
        </label>
        {wantsPassword && (
          <>
            <label for={ids.password}>{t('linkPassword')}</label>
            <input
              id={ids.password}
              value={password}
              autocomplete="off"
              spellcheck={false}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          </>
        )}
        <label for={ids.day}>{t('lastDay')}</label>
        <input
          id={ids.day}
          type="date"
          min={dayOf(Date.now())}
          max="9999-12-31"
          value={lastDay}
          onInput={(event) => setLastDay(event.currentTarget.value)}
        />
        <label for={ids.size}>{t('uploadLinkSize')}</label>
        <select id={ids.size} value={size} onChange={(event) => setSize(event.currentTarget.value)}>
          <option value="">{t('withoutLimit')}</option>
          {SIZES.map((bytes) => (
            <option key={bytes} value={String(bytes)}>
              {sizeText(bytes)}
            </option>
          ))}
        </select>
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {t('close')}
          </button>
          <button type="submit" class="button primary" disabled={isBusy}>
            {t('makeLink')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
