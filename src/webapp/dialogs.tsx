import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { splitName } from '../util/file-name.ts';
import { t } from './messages.ts';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly isWide?: boolean;
  readonly children: ComponentChildren;
}

/** A dialog over the page. Escape and a click beside it close it. */
export function Dialog({ title, onClose, isWide = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  // Before the next key: it belongs to the dialog.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard closes a dialog by Escape
    <dialog
      ref={dialog}
      class={isWide ? 'wide' : undefined}
      aria-labelledby={titleId}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div class="dialog">
        <h2 id={titleId}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

interface NameDialogProps {
  readonly title: string;
  readonly label: string;
  readonly action: string;
  readonly name: string;
  /** Carries it out; returns why it could not be. */
  readonly onName: (name: string) => Promise<string | undefined>;
  readonly onClose: () => void;
}

/** Asks for a name, and says what is wrong with it. */
export function NameDialog({ title, label, action, name, onName, onClose }: NameDialogProps) {
  const input = useRef<HTMLInputElement>(null);
  const inputId = useId();
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => {
    input.current?.focus();
    // What people change is the part before the extension.
    input.current?.setSelectionRange(0, splitName(name).stem.length);
  }, [name]);
  const submit = async () => {
    const wanted = input.current?.value.trim() ?? '';
    if (wanted === '' || wanted === name) return onClose();
    if (wanted.includes('/')) return setProblem(t('nameWithSlash'));
    setBusy(true);
    const failure = await onName(wanted);
    setBusy(false);
    if (failure === undefined) onClose();
    else setProblem(failure);
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <label for={inputId}>{label}</label>
        <input ref={input} id={inputId} defaultValue={name} autocomplete="off" spellcheck={false} />
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <div class="actions">
          <button type="button" class="button" onClick={onClose}>
            {t('cancel')}
          </button>
          <button type="submit" class="button primary" disabled={isBusy}>
            {action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly text: string;
  readonly action: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

export function ConfirmDialog({ title, text, action, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{text}</p>
      <div class="actions">
        <button type="button" class="button" onClick={onClose}>
          {t('cancel')}
        </button>
        <button
          type="button"
          class="button danger"
          onClick={() => {
            onConfirm();
            onClose();
          }}
        >
          {action}
        </button>
      </div>
    </Dialog>
  );
}
