import { useId, useRef, useState } from 'preact/hooks';
import { CopyButton } from './copy-button.tsx';
import { DavFailure } from './dav.ts';
import { ConfirmDialog, Dialog } from './dialogs.tsx';
import { failureText } from './folder.ts';
import { timeText } from './format.ts';
import { ask, call } from './gateway.ts';
import { t } from './messages.ts';
import { useAnswer } from './use-answer.ts';

interface AppPassword {
  readonly id: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
  /** Absent: never. */
  readonly usedMs?: number;
}

const load = async (signal: AbortSignal) =>
  (await ask<{ readonly appPasswords: readonly AppPassword[] }>('app-passwords', {}, signal)).appPasswords;

interface Props {
  readonly user: string;
  readonly onClose: () => void;
}

/** The user's app passwords: makes new ones, shows each once, and ends them. */
export function AppPasswordsDialog({ user, onClose }: Props) {
  const { answer: appPasswords, failure, reload } = useAnswer(load);
  const [made, setMade] = useState<{ readonly name: string; readonly password: string }>();
  const [ending, setEnding] = useState<AppPassword>();
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();

  const make = async () => {
    const name = input.current?.value.trim() ?? '';
    if (name === '') return input.current?.focus();
    setBusy(true);
    setProblem(undefined);
    try {
      const { password } = await call<{ readonly password: string }>('make-app-password', { name });
      setMade({ name, password });
      if (input.current) input.current.value = '';
      reload();
    } catch (error) {
      const isFull = error instanceof DavFailure && error.status === 409;
      setProblem(isFull ? t('tooManyAppPasswords') : failureText(error));
    }
    setBusy(false);
  };
  const end = async ({ id }: AppPassword) => {
    setProblem(undefined);
    setMade(undefined);
    try {
      await call('end-app-password', { id });
    } catch (error) {
      // One that is gone has ended, which is what was wanted.
      if (!(error instanceof DavFailure && error.status === 404)) setProblem(failureText(error));
    }
    reload();
  };

  return (
    <>
      <Dialog title={t('appPasswords')} isWide onClose={onClose}>
        <p>{t('appPasswordsReason')}</p>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void make();
          }}
        >
          <label for={id}>{t('appPasswordName')}</label>
          <input ref={input} id={id} maxLength={100} autocomplete="off" />
          <div class="actions">
            <button type="submit" class="button primary" disabled={isBusy}>
              {t('makeAppPassword')}
            </button>
          </div>
        </form>
        {made && (
          <div role="status">
            <p>{t('appPasswordMade', made.name, user)}</p>
            <div class="command">
              <pre>{made.password}</pre>
              <CopyButton text={made.password} />
            </div>
          </div>
        )}
        {[problem, failure].map(
          (text) =>
            text !== undefined && (
              <p key={text} class="problem" role="alert">
                {text}
              </p>
            ),
        )}
        {!appPasswords && failure === undefined && <p>{t('loading')}</p>}
        {appPasswords?.length === 0 && <p>{t('noAppPasswords')}</p>}
        {appPasswords && appPasswords.length > 0 && (
          <ul class="links">
            {appPasswords.map((each) => (
              <Line key={each.id} appPassword={each} onEnd={() => setEnding(each)} />
            ))}
          </ul>
        )}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {t('close')}
          </button>
        </div>
      </Dialog>
      {ending && (
        <ConfirmDialog
          title={t('endAppPasswordTitle', ending.name)}
          text={t('endAppPasswordWarning')}
          action={t('endAppPassword')}
          onConfirm={() => void end(ending)}
          onClose={() => setEnding(undefined)}
        />
      )}
    </>
  );
}

interface LineProps {
  readonly appPassword: AppPassword;
  readonly onEnd: () => void;
}

function Line({ appPassword: { name, createdMs, usedMs }, onEnd }: LineProps) {
  return (
    <li>
      <div class="about">
        <span>{name}</span>
        <span class="soft">
          {t('madeOn', timeText(createdMs))},{' '}
          {usedMs === undefined ? t('neverUsed') : t('lastUsed', timeText(usedMs))}
        </span>
      </div>
      <div class="actions">
        <button type="button" class="button danger" aria-label={t('endAppPasswordOf', name)} onClick={onEnd}>
          {t('endAppPassword')}
        </button>
      </div>
    </li>
  );
}
