import { useEffect, useRef } from 'preact/hooks';
import { addressOfFunction } from './gateway.ts';
import { csrfHeader } from './session.ts';

/** What has changed in the drive, as the gateway's `changes` says it. */
export interface Changes {
  /** Folders with other entries than before. */
  readonly folders: readonly string[];
  /** Folders below which anything may have changed. */
  readonly trees: readonly string[];
  readonly locks: boolean;
  readonly writes: boolean;
}

/** The event that stands for all changes during a gap. */
const EVERYTHING: Changes = { folders: [], trees: ['/'], locks: true, writes: true };

/** Pauses before the stream is opened again, in ms: after its end, and after the gateway has refused it. */
const REOPEN_MS = 2_000;
const REFUSED_MS = 30_000;

/**
 * Calls `heard` with the changes of the drive by all clients, and after each gap with `EVERYTHING`. A hidden page hears
 * nothing: a browser has six connections for all pages of a site.
 */
export function useChanges(heard: (changes: Changes) => void): void {
  const listener = useRef(heard);
  listener.current = heard;
  useEffect(() => {
    let running: AbortController | undefined;
    const follow = async (signal: AbortSignal) => {
      while (!signal.aborted) {
        const isOpened = await readStream(signal, (changes) => listener.current(changes)).catch(() => true);
        await new Promise((resolve) => setTimeout(resolve, isOpened ? REOPEN_MS : REFUSED_MS));
      }
    };
    const restart = () => {
      running?.abort();
      running = new AbortController();
      if (document.visibilityState === 'visible') void follow(running.signal);
    };
    restart();
    document.addEventListener('visibilitychange', restart);
    addEventListener('online', restart);
    return () => {
      document.removeEventListener('visibilitychange', restart);
      removeEventListener('online', restart);
      running?.abort();
    };
  }, []);
}

/**
 * Reads the stream to its end; resolves with whether there was one. Not by `EventSource`, which cannot send the header that
 * keeps the browser from asking for a Basic login when the session has ended.
 */
async function readStream(signal: AbortSignal, heard: (changes: Changes) => void): Promise<boolean> {
  const headers = await csrfHeader('GET');
  const answer = await fetch(addressOfFunction('changes'), { headers, signal, cache: 'no-store' });
  if (!answer.ok || !answer.body) return false;
  heard(EVERYTHING);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let step = await reader.read(); !step.done; step = await reader.read()) {
    const lines = (text + step.value).split('\n');
    text = lines.pop() ?? '';
    for (const line of lines) if (line.startsWith('data: ')) heard(JSON.parse(line.slice('data: '.length)));
  }
  return true;
}

/** Whether the list of `folder` may have changed. Letter case counts for nothing in a drive. */
export function concerns({ folders, trees }: Changes, folder: string): boolean {
  const key = keyOf(folder);
  return (
    folders.some((each) => keyOf(each) === key) ||
    trees.some((tree) => tree === '/' || key === keyOf(tree) || key.startsWith(`${keyOf(tree)}/`))
  );
}

function keyOf(path: string): string {
  return path.normalize('NFC').toLowerCase();
}
