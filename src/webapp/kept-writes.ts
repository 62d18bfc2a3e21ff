import { useCallback, useMemo } from 'preact/hooks';
import { addressOfFunction, ask, call } from './gateway.ts';
import { useAnswer } from './use-answer.ts';

/** A file that the drive has accepted and the storage service does not have, as the gateway's `kept-writes` describes it. */
export interface KeptWrite {
  readonly id: string;
  /** `lost`: the service has refused it for good. */
  readonly state: 'waiting' | 'lost';
  readonly path: string | null;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly writtenMs: number | null;
  readonly reason: string | null;
}

interface Answer {
  readonly writes: readonly KeptWrite[];
  readonly leftOut: number;
}

export interface KeptWrites {
  readonly writes: readonly KeptWrite[];
  /** Number of further ones. */
  readonly leftOut: number;
  /** Why they cannot be listed. */
  readonly failure: string | undefined;
  /** Returns the waiting write at a path. */
  readonly at: (path: string) => KeptWrite | undefined;
  readonly reload: () => void;
}

const NOTHING: Answer = { writes: [], leftOut: 0 };

/** Asks for the pending and lost writes. `isOn`: whether the drive has a journal. */
export function useKeptWrites(isOn: boolean): KeptWrites {
  const load = useCallback(
    (signal: AbortSignal) => (isOn ? ask<Answer>('kept-writes', {}, signal) : Promise.resolve(NOTHING)),
    [isOn],
  );
  const { answer = NOTHING, failure, reload } = useAnswer(load);
  const at = useMemo(() => {
    const byPath = new Map<string, KeptWrite>();
    for (const write of answer.writes)
      if (write.path !== null && write.state === 'waiting') byPath.set(write.path.toLowerCase(), write);
    return (path: string) => byPath.get(path.toLowerCase());
  }, [answer]);
  return { ...answer, failure, at, reload };
}

export function addressOfKept({ id }: KeptWrite): string {
  return addressOfFunction('kept-write', { id });
}

/** Sends it again, or restores a refused one to its path. Throws `DavFailure`. */
export async function retryWrite({ id }: KeptWrite): Promise<void> {
  await call('retry-write', { id });
}

/** Deletes it for good. Throws `DavFailure`. */
export async function discardWrite({ id }: KeptWrite): Promise<void> {
  await call('discard-write', { id });
}
