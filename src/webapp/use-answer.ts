import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { failureText } from './folder.ts';

interface Asked<Answer> {
  /** `undefined` until the first answer. */
  readonly answer?: Answer;
  /** Why there is none. */
  readonly failure?: string;
}

/** Calls `load`, which must stay the same function, and again on `reload`. */
export function useAnswer<Answer>(
  load: (signal: AbortSignal) => Promise<Answer>,
): Asked<Answer> & { readonly reload: () => void } {
  const [asked, setAsked] = useState<Asked<Answer>>({});
  const running = useRef<AbortController>(null);
  const reload = useCallback(() => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    load(signal).then(
      (answer) => !signal.aborted && setAsked({ answer }),
      (error: unknown) => !signal.aborted && setAsked({ failure: failureText(error) }),
    );
  }, [load]);
  useEffect(() => {
    reload();
    return () => running.current?.abort();
  }, [reload]);
  return { ...asked, reload };
}
