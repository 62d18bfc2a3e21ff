import { useEffect, useState } from 'preact/hooks';
import { ask } from './gateway.ts';

/** The name of the user who has logged in; `undefined` on a drive without a login, and until it is known. */
export function useUser(): string | undefined {
  const [user, setUser] = useState<string>();
  useEffect(() => {
    const ended = new AbortController();
    ask<{ readonly user: string | null }>('drive', {}, ended.signal).then(
      (answer) => setUser(answer.user ?? undefined),
      // The page works without the name.
      () => undefined,
    );
    return () => ended.abort();
  }, []);
  return user;
}
