import { useLayoutEffect } from 'preact/hooks';

/** While `isUnfinished`, the browser asks before it leaves the page: from the moment on in which the page shows it. */
export function useLeaveQuestion(isUnfinished: boolean): void {
  useLayoutEffect(() => {
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    if (isUnfinished) addEventListener('beforeunload', ask);
    return () => removeEventListener('beforeunload', ask);
  }, [isUnfinished]);
}
