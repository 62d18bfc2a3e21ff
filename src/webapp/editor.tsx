import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { DavFailure } from './dav.ts';
import { failureText } from './folder.ts';
import { Sign } from './icons.tsx';
import { t } from './messages.ts';
import { nameOf } from './paths.ts';
import { readTextFile, saveTextCopy, saveTextFile, type TextFile } from './text-file.ts';
import { useLeaveQuestion } from './use-leave-question.ts';

interface Props {
  readonly path: string;
  /** Called when a file has been stored. */
  readonly onSaved: () => void;
  readonly onClose: () => void;
}

/** What the person must decide. */
type Question = 'unsaved' | 'conflict';

/** Edits one text file over the page. Changes are saved only over the version that was read, and never lost silently. */
export function Editor({ path, onSaved, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const [file, setFile] = useState<TextFile>();
  const [isChanged, setChanged] = useState(false);
  const [isSaving, setSaving] = useState(false);
  const [question, setQuestion] = useState<Question>();
  const [problem, setProblem] = useState<string>();
  const [news, setNews] = useState<string>();

  useLayoutEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    const ended = new AbortController();
    readTextFile(path, ended.signal).then(
      setFile,
      (error: unknown) => !ended.signal.aborted && setProblem(failureText(error)),
    );
    return () => ended.abort();
  }, [path]);
  const isLoaded = file !== undefined;
  useLayoutEffect(() => {
    if (!isLoaded) return;
    field.current?.focus();
    field.current?.setSelectionRange(0, 0);
  }, [isLoaded]);
  useLeaveQuestion(isChanged);

  const save = async (how: (file: TextFile, text: string) => Promise<TextFile>): Promise<boolean> => {
    if (!file || !field.current || isSaving) return false;
    const text = field.current.value;
    setSaving(true);
    setQuestion(undefined);
    setProblem(undefined);
    try {
      const saved = await how(file, text);
      setFile(saved);
      setQuestion(undefined);
      // The person may have gone on typing.
      setChanged(field.current.value !== text);
      setNews(saved.path === file.path ? t('saved') : t('savedAs', nameOf(saved.path)));
      field.current.focus();
      onSaved();
      return true;
    } catch (error) {
      const isOutdated = error instanceof DavFailure && error.status === 412;
      if (isOutdated) setQuestion('conflict');
      else setProblem(t('notSaved', failureText(error)));
      return false;
    } finally {
      setSaving(false);
    }
  };
  const saveOver = async () =>
    field.current?.value === file?.text || save((before, text) => saveTextFile(before, text, false));
  const close = () => {
    if (isChanged) setQuestion('unsaved');
    else dialog.current?.close();
  };
  const keepEditing = () => {
    setQuestion(undefined);
    field.current?.focus();
  };

  return (
    <dialog
      ref={dialog}
      class="preview editor"
      aria-label={nameOf(file?.path ?? path)}
      onClose={() => {
        if (!isChanged) return onClose();
        // Some browsers close a dialog without asking the page, for example by the back gesture.
        dialog.current?.showModal();
        setQuestion('unsaved');
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === 'Escape') close();
        else if (event.key.toLowerCase() === 's' && (event.ctrlKey || event.metaKey)) void saveOver();
        else return;
        event.preventDefault();
      }}
    >
      <header>
        <h2>{nameOf(file?.path ?? path)}</h2>
        <span class="state" role="status">
          {isSaving ? t('saving') : isChanged ? t('unsaved') : news}
        </span>
        <button
          type="button"
          class="button primary"
          disabled={!isChanged || isSaving}
          onClick={() => void saveOver()}
        >
          {t('save')}
        </button>
        <button type="button" class="button plain" aria-label={t('close')} onClick={close}>
          <Sign name="close" />
        </button>
      </header>
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      {question === 'unsaved' && (
        <div class="question" role="alert">
          <p>{t('unsavedQuestion')}</p>
          <button type="button" class="button" onClick={keepEditing}>
            {t('keepEditing')}
          </button>
          <button type="button" class="button danger" onClick={onClose}>
            {t('discard')}
          </button>
          <button
            type="button"
            class="button primary"
            onClick={() => void saveOver().then((isSaved) => isSaved && onClose())}
          >
            {t('save')}
          </button>
        </div>
      )}
      {question === 'conflict' && (
        <div class="question" role="alert">
          <p>{t('changedByOthers')}</p>
          <button type="button" class="button" onClick={keepEditing}>
            {t('keepEditing')}
          </button>
          <button
            type="button"
            class="button danger"
            onClick={() => void save((before, text) => saveTextFile(before, text, true))}
          >
            {t('replace')}
          </button>
          <button type="button" class="button primary" onClick={() => void save(saveTextCopy)}>
            {t('saveCopy')}
          </button>
        </div>
      )}
      <div class="stage">
        {file ? (
          <textarea
            ref={field}
            aria-label={t('text')}
            spellcheck={false}
            defaultValue={file.text}
            onInput={(event) => setChanged(event.currentTarget.value !== file.text)}
          />
        ) : (
          problem === undefined && <p class="note">{t('loading')}</p>
        )}
      </div>
    </dialog>
  );
}
