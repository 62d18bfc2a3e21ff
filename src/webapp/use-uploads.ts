import { useEffect, useMemo, useState } from 'preact/hooks';
import { parentOf } from './paths.ts';
import { type Upload, Uploads } from './uploads.ts';
import { useLeaveQuestion } from './use-leave-question.ts';

/** Keeps the uploads; lists the folder again when a file has been stored in it. */
export function useUploads(path: string, reload: () => void): readonly [readonly Upload[], Uploads] {
  const [uploads, setUploads] = useState<readonly Upload[]>([]);
  const [storedIn, setStoredIn] = useState<{ folder: string }>();
  const queue = useMemo(() => new Uploads(setUploads, (folder) => setStoredIn({ folder })), []);
  useEffect(() => {
    if (!storedIn || (storedIn.folder !== path && parentOf(storedIn.folder) !== path)) return;
    // One listing for many files that are stored together.
    const timer = setTimeout(reload, 200);
    return () => clearTimeout(timer);
  }, [storedIn, path, reload]);
  useLeaveQuestion(uploads.some(({ state }) => state === 'sending' || state === 'waiting'));
  return [uploads, queue];
}
