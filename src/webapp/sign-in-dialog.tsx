import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { t } from './messages.ts';
import {
  declineSignIn,
  type EndedSession,
  PROVIDER_SIGN_IN,
  type SignInFailure,
  signIn,
  watchSession,
} from './session.ts';

/** Asks the person to sign in again when the session has ended. The page below stays as it is. */
export function SignInAgain() {
  const [ended, setEnded] = useState<EndedSession>();
  useEffect(() => watchSession(setEnded), []);
  return ended ? <SignInDialog {...ended} /> : null;
}

function SignInDialog({ user, providerName }: EndedSession) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const close = () => dialog.current?.close();
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={declineSignIn}
      // The keys belong to this dialog, and not to the preview or editor below.
      onKeyDown={(event) => event.stopPropagation()}
    >
      <div class="dialog">
        <h2 id={id}>{t('signInAgain')}</h2>
        {providerName === undefined ? (
          <PasswordForm user={user ?? ''} close={close} />
        ) : (
          <ProviderLink name={providerName} close={close} />
        )}
      </div>
    </dialog>
  );
}

/** Leads to the provider in a new tab, which tells this one when it has a session. */
function ProviderLink({ name, close }: { readonly name: string; readonly close: () => void }) {
  return (
    <>
      <p>{t('signInInTab')}</p>
      <div class="actions">
        <button type="button" class="button" onClick={close}>
          {t('notNow')}
        </button>
        <a class="button primary" href={PROVIDER_SIGN_IN} target="_blank" rel="noopener">
          {t('signInWith', name)}
        </a>
      </div>
    </>
  );
}

function PasswordForm({ user, close }: { readonly user: string; readonly close: () => void }) {
  const name = useRef<HTMLInputElement>(null);
  const password = useRef<HTMLInputElement>(null);
  const id = useId();
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  // After the dialog is shown, which moves the focus.
  useEffect(() => password.current?.focus(), []);
  const submit = async () => {
    setBusy(true);
    const failure = await signIn(name.current?.value ?? '', password.current?.value ?? '').catch(
      () => UNREACHABLE,
    );
    setBusy(false);
    if (!failure) return;
    setProblem(problemText(failure));
    password.current?.select();
  };
  return (
    <>
      <p>{t('signInReason')}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <label for={`${id}-name`}>{t('userName')}</label>
        <input
          ref={name}
          id={`${id}-name`}
          autocomplete="username"
          autocapitalize="none"
          spellcheck={false}
          defaultValue={user}
          readOnly={user !== ''}
          required
        />
        <label for={`${id}-password`}>{t('password')}</label>
        <input
          ref={password}
          id={`${id}-password`}
          type="password"
          autocomplete="current-password"
          required
        />
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="button" class="button" onClick={close}>
            {t('notNow')}
          </button>
          <button type="submit" class="button primary" disabled={isBusy}>
            {t('signIn')}
          </button>
        </div>
      </form>
    </>
  );
}

const UNREACHABLE: SignInFailure = { status: 0, waitSeconds: 0 };

function problemText({ status, waitSeconds }: SignInFailure): string {
  if (status === 401) return t('wrongPassword');
  if (status === 503) return t('signInUnavailable');
  return status === 429 ? t('waitForSignIn', waitSeconds) : t('noSignIn');
}
