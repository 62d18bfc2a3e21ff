import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { DavFailure, type Item } from './dav.ts';
import { ConfirmDialog, Dialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { LinkAddress } from './link-address.tsx';
import { t } from './messages.ts';
import {
  changeLink,
  dayOf,
  type LinkChange,
  type SharedLink,
  share,
  unshare,
  useLinks,
} from './shared-links.ts';

interface Props {
  readonly item: Pick<Item, 'kind' | 'path' | 'name'>;
  readonly onClose: () => void;
}

/** Makes the link of one file or folder, shows it, changes it and ends it. */
export function ShareDialog({ item, onClose }: Props) {
  const { kind, path } = item;
  const { links, failure, show, reload } = useLinks(path);
  const [outcome, setOutcome] = useState('');
  const [isStopping, setStopping] = useState(false);
  const [problem, setProblem] = useState<string>();
  // An item of a Dropbox account may have more links from other days; they are in the list of all links.
  const [link] = links ?? [];

  /** Does `work`, and shows the link that it returns, or why it failed. Returns whether it succeeded. */
  const tried = async (work: () => Promise<SharedLink | undefined>, done: string): Promise<boolean> => {
    setProblem(undefined);
    setOutcome('');
    try {
      const made = await work();
      show(made ? [{ ...made, kind, path }] : []);
      setOutcome(done);
      return true;
    } catch (error) {
      setProblem(refusalText(error));
      // Someone else has made the link, or ended it.
      if (error instanceof DavFailure && (error.status === 404 || error.status === 409)) reload();
      return false;
    }
  };
  const save = (change: LinkChange) =>
    link
      ? tried(() => changeLink(path, link.url, change), t('linkChanged'))
      : tried(() => share(path, change), t('linkMade'));
  const stop = async (url: string): Promise<undefined> => {
    await unshare(path, url);
  };

  return (
    <>
      <Dialog title={t('shareTitle', item.name || t('drive'))} onClose={onClose}>
        {links && (
          <LinkForm key={link?.url ?? ''} {...{ link, save, onClose }} onStop={() => setStopping(true)} />
        )}
        {!links && failure === undefined && <p>{t('loading')}</p>}
        {failure !== undefined && (
          <>
            <p class="problem" role="alert">
              {failure}
            </p>
            <div class="actions">
              <button type="button" class="button" onClick={reload}>
                {t('retry')}
              </button>
            </div>
          </>
        )}
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <p role="status">{outcome}</p>
      </Dialog>
      {link && isStopping && (
        <StopDialog
          name={item.name}
          onConfirm={() => void tried(() => stop(link.url), t('linkEnded'))}
          onClose={() => setStopping(false)}
        />
      )}
    </>
  );
}

interface StopProps {
  readonly name: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

/** Asks before a link ends, because nobody can make the same link again. */
export function StopDialog({ name, onConfirm, onClose }: StopProps) {
  return (
    <ConfirmDialog
      title={t('stopSharingOf', name || t('drive'))}
      text={t('stopWarning')}
      action={t('stopSharing')}
      onConfirm={onConfirm}
      onClose={onClose}
    />
  );
}

interface LinkFormProps {
  /** `undefined` where there is none yet. */
  readonly link: SharedLink | undefined;
  /** Returns whether it succeeded. */
  readonly save: (change: LinkChange) => Promise<boolean>;
  readonly onStop: () => void;
  readonly onClose: () => void;
}

/** The link, and its current or future settings. */
function LinkForm({ link, save, onStop, onClose }: LinkFormProps) {
  const form = useRef<HTMLFormElement>(null);
  const hadPassword = link?.visibility === 'password';
  const oldDay = link?.expiresMs === undefined ? '' : dayOf(link.expiresMs);
  const [wantsPassword, setWantsPassword] = useState(hadPassword);
  const [password, setPassword] = useState('');
  const [lastDay, setLastDay] = useState(oldDay);
  const [isPasswordMissing, setPasswordMissing] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const ids = { password: useId(), day: useId() };
  // The link is selected, so that a key copies it; where there is none, a key makes it.
  useLayoutEffect(() => form.current?.querySelector<HTMLElement>('[readonly], [type=submit]')?.focus(), []);

  const submit = async () => {
    const isMissing = wantsPassword && password === '' && !hadPassword;
    setPasswordMissing(isMissing);
    const change: LinkChange = {
      ...(wantsPassword && password !== '' && { password }),
      ...(!wantsPassword && hadPassword && { password: '' }),
      ...(lastDay !== oldDay && { lastDay }),
    };
    if (isMissing || (link && Object.keys(change).length === 0)) return;
    setBusy(true);
    if (await save(change)) setPassword('');
    setBusy(false);
  };

  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {link && <LinkAddress url={link.url} />}
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
            placeholder={hadPassword ? t('passwordUnchanged') : undefined}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
          {isPasswordMissing && (
            <p class="problem" role="alert">
              {t('passwordMissing')}
            </p>
          )}
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
      <div class="actions">
        {link && (
          <button type="button" class="button danger" onClick={onStop}>
            {t('stopSharing')}
          </button>
        )}
        <button type="button" class="button" onClick={onClose}>
          {t('close')}
        </button>
        <button type="submit" class="button primary" disabled={isBusy}>
          {t(link ? 'saveLink' : 'makeLink')}
        </button>
      </div>
    </form>
  );
}

/** Returns what a person should read when a link is refused. */
function refusalText(error: unknown): string {
  const isRefused = error instanceof DavFailure && error.status === 403;
  return isRefused ? t('linkRefused', failureText(error)) : failureText(error);
}
