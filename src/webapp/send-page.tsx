import type { ComponentChildren } from 'preact';
import { useCallback, useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { sizeText } from './format.ts';
import { Sign } from './icons.tsx';
import { t } from './messages.ts';
import { type About, Sender, SendFailure, type Sending } from './sender.ts';
import { useLeaveQuestion } from './use-leave-question.ts';

/** The page of an upload link: people without a login choose or drop files, and see only what they send themselves. */
export function SendPage({ token }: { readonly token: string }) {
  const [about, setAbout] = useState<About>();
  const [problem, setProblem] = useState<string>();
  const [sendings, setSendings] = useState<readonly Sending[]>([]);
  const sender = useMemo(() => new Sender(token, setSendings), [token]);
  const load = useCallback(async () => {
    try {
      setAbout(await sender.about());
    } catch (error) {
      setProblem(error instanceof SendFailure ? error.message : String(error));
    }
  }, [sender]);
  useEffect(() => void load(), [load]);
  useEffect(() => {
    document.title = about?.label ?? t('sendFiles');
  }, [about]);
  useLeaveQuestion(sendings.some(({ state }) => state === 'sending' || state === 'waiting'));
  const add = useCallback((files: readonly File[]) => sender.add(files), [sender]);
  if (problem !== undefined)
    return (
      <Card title={t('sendFiles')}>
        <p class="problem" role="alert">
          {problem}
        </p>
      </Card>
    );
  if (!about)
    return (
      <Card title={t('sendFiles')}>
        <p>{t('loading')}</p>
      </Card>
    );
  if (about.needsPassword)
    return (
      <Card title={t('sendFiles')}>
        <PasswordForm sender={sender} onOpen={load} />
      </Card>
    );
  return <Ready about={about} sendings={sendings} onFiles={add} onRetry={(id) => sender.retry(id)} />;
}

function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <main>
      <div class="card send">
        <h1>{title}</h1>
        {children}
      </div>
    </main>
  );
}

interface PasswordProps {
  readonly sender: Sender;
  readonly onOpen: () => Promise<void>;
}

function PasswordForm({ sender, onOpen }: PasswordProps) {
  const [problem, setProblem] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const unlock = async () => {
    const password = input.current?.value ?? '';
    if (password === '') return input.current?.focus();
    setBusy(true);
    setProblem(undefined);
    try {
      await sender.unlock(password);
      await onOpen();
    } catch (error) {
      setProblem(passwordProblem(error));
    }
    setBusy(false);
  };
  return (
    <>
      <p>{t('sendPassword')}</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void unlock();
        }}
      >
        <label for={id}>{t('linkPassword')}</label>
        <input ref={input} id={id} type="password" autocomplete="off" />
        {problem !== undefined && (
          <p class="problem" role="alert">
            {problem}
          </p>
        )}
        <button type="submit" class="button primary" disabled={isBusy}>
          {t('goOnSending')}
        </button>
      </form>
    </>
  );
}

function passwordProblem(error: unknown): string {
  if (!(error instanceof SendFailure)) return String(error);
  if (error.status === 403) return t('wrongSendPassword');
  return error.status === 429 ? t('waitToSend', error.waitSeconds) : error.message;
}

interface ReadyProps {
  readonly about: About;
  readonly sendings: readonly Sending[];
  readonly onFiles: (files: readonly File[]) => void;
  readonly onRetry: (id: number) => void;
}

/** Takes files by a button, and by dropping them anywhere on the page. */
function Ready({ about, sendings, onFiles, onRetry }: ReadyProps) {
  const [isOver, setOver] = useState(false);
  const [hasFolders, setHasFolders] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const over = (event: DragEvent) => {
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => event.relatedTarget === null && setOver(false);
    const drop = (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      const { files, folders } = droppedIn(event.dataTransfer);
      setHasFolders(folders > 0);
      if (files.length > 0) onFiles(files);
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, [onFiles]);
  return (
    <Card title={about.label ?? t('sendFiles')}>
      <p>{t('sendReason')}</p>
      {about.leftBytes !== undefined && <p>{t('roomLeft', sizeText(about.leftBytes))}</p>}
      <div class="actions">
        <button type="button" class="button primary" onClick={() => input.current?.click()}>
          <Sign name="upload" />
          {t('chooseFiles')}
        </button>
      </div>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={t('chooseFiles')}
        onChange={({ currentTarget }) => {
          setHasFolders(false);
          onFiles([...(currentTarget.files ?? [])]);
          // Otherwise the same file could not be chosen again.
          currentTarget.value = '';
        }}
      />
      {hasFolders && (
        <p class="problem" role="alert">
          {t('cannotSendFolders')}
        </p>
      )}
      {sendings.length > 0 && <Progress sendings={sendings} onRetry={onRetry} />}
      {isOver && <div class="drop">{t('dropToSend')}</div>}
    </Card>
  );
}

function droppedIn(data: DataTransfer | null): { readonly files: readonly File[]; readonly folders: number } {
  const items = [...(data?.items ?? [])].filter(({ kind }) => kind === 'file');
  const folders = items.filter((item) => item.webkitGetAsEntry()?.isDirectory === true).length;
  const files = items
    .filter((item) => item.webkitGetAsEntry()?.isDirectory !== true)
    .map((item) => item.getAsFile())
    .filter((file) => file !== null);
  return { files, folders };
}

function Progress({ sendings, onRetry }: Pick<ReadyProps, 'sendings' | 'onRetry'>) {
  const count = (state: Sending['state']) => sendings.filter((sending) => sending.state === state).length;
  const [done, failed] = [count('done'), count('failed')];
  const isOver = done + failed === sendings.length;
  const sum = (bytesOf: (sending: Sending) => number) =>
    sendings.reduce((bytes, sending) => bytes + bytesOf(sending), 0);
  return (
    <section class="sendings" aria-label={t('sendFiles')}>
      <p role="status">
        {!isOver
          ? t('sendingCount', done, sendings.length)
          : failed > 0
            ? t('sentWithFailures', done, failed)
            : t('sentAll', done)}
      </p>
      {!isOver && (
        <progress
          aria-label={t('sendFiles')}
          max={Math.max(
            1,
            sum(({ sizeBytes }) => sizeBytes),
          )}
          value={sum(({ sentBytes }) => sentBytes)}
        />
      )}
      <ul>
        {sendings.map((sending) => (
          <Line key={sending.id} sending={sending} onRetry={() => onRetry(sending.id)} />
        ))}
      </ul>
    </section>
  );
}

function Line({ sending, onRetry }: { readonly sending: Sending; readonly onRetry: () => void }) {
  const { name, sizeBytes, sentBytes, state, failure } = sending;
  return (
    <li>
      <span class="name">{name}</span>
      <span class="soft">
        {state === 'done'
          ? t('done')
          : state === 'sending' && sentBytes > 0
            ? t('sentOf', sizeText(Math.min(sentBytes, sizeBytes)), sizeText(sizeBytes))
            : sizeText(sizeBytes)}
      </span>
      {failure !== undefined && <span class="problem">{failure}</span>}
      {state === 'failed' && (
        <button type="button" class="button" onClick={onRetry}>
          {t('retry')}
        </button>
      )}
    </li>
  );
}
