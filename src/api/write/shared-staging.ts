import { parsed } from '../request.ts';
import type { Turns, TurnWork } from '../turns.ts';
import type { ShortContent, UploadCalls, UploadSession } from './upload-calls.ts';

/** Maximum size of contents that another gateway may stage, in bytes: they go through the memory of Redis. */
const OFFERED_BYTES_MAX = 512 * 1024;

type Stage = UploadCalls['stageContents'];

type Staged = readonly (UploadSession | Error)[] | typeof REFUSED;

/** A content as a gateway offers it to another one. */
interface OfferedContent {
  readonly base64: string;
  readonly contentHash: string;
}

/**
 * Returns a `stageContents` with which gateways that commit together also stage short contents together. The sessions
 * belong to the account, so each gateway can commit those of its own contents; staging twice is harmless.
 */
export function sharedStaging(turns: Turns, stage: Stage): Stage {
  return async (contents, signal) => {
    const sizeBytes = contents.reduce((sum, { bytes }) => sum + bytes.length, 0);
    if (!turns.isShared || sizeBytes > OFFERED_BYTES_MAX) return stage(contents, signal);
    const work: TurnWork<Staged> = {
      kind: 'staging',
      entries: contents.map(offeredText),
      async together(offers) {
        const theirs = offers.map(({ entries }) => entries.map(contentOf));
        const outcomes = await stage([...contents, ...theirs.flat()], signal);
        let start = contents.length;
        const answers = theirs.map(({ length }) => {
          const part = outcomes.slice(start, start + length);
          start += length;
          return part.every(isSession) ? JSON.stringify(part.map(({ id }) => id)) : REFUSED;
        });
        return { own: outcomes.slice(0, contents.length), answers };
      },
      answerAfter: () => REFUSED,
      read: (text) => (text === REFUSED ? REFUSED : parsed<readonly string[]>(text).map((id) => ({ id }))),
      lost: async () => REFUSED,
    };
    const outcomes = await turns.run(work, signal ?? new AbortController().signal);
    // Staged alone, the contents get the outcome that the other gateway could not tell.
    return outcomes === REFUSED ? stage(contents, signal) : outcomes;
  };
}

/** The answer to an offer that was not staged. */
const REFUSED = 'refused';

function offeredText({ bytes, contentHash }: ShortContent): string {
  const offered: OfferedContent = { base64: Buffer.from(bytes).toString('base64'), contentHash };
  return JSON.stringify(offered);
}

function contentOf(text: string): ShortContent {
  const { base64, contentHash } = parsed<OfferedContent>(text);
  return { bytes: Buffer.from(base64, 'base64'), contentHash };
}

function isSession(outcome: UploadSession | Error): outcome is UploadSession {
  return !(outcome instanceof Error);
}
