import { type Answer, ClientGone, isContent } from '../../http/exchange.ts';
import { elapsedMs } from '../../util/clock.ts';
import type { Faults } from './faults.ts';

/** Interval at which a slow connection gets its next bytes, in ms. */
const PACE_MS = 20;

/** Returns a download with faults: slow, with a wrong byte, or cut. */
export function contentWithFaults(faults: Faults, answer: Answer, signal: AbortSignal): Answer {
  const { body } = answer;
  if (!isContent(body) || !body.sizeBytes) return answer;
  const { sizeBytes } = body;
  let { bytes } = body;
  if (faults.happens('corrupt-share')) bytes = withWrongByte(bytes, faults.random(sizeBytes));
  if (faults.happens('cut-share')) {
    const afterBytes = faults.value('cut-after-bytes') || faults.random(sizeBytes);
    bytes = cut(bytes, afterBytes);
  }
  return { ...answer, body: { sizeBytes, bytes: paced(faults, bytes, signal) } };
}

/** Yields the bytes at the pace of one slow connection. */
export async function* paced(
  faults: Faults,
  bytes: AsyncIterable<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const { clock } = faults;
  const start = clock.instant();
  let dueMs = 0;
  for await (const chunk of bytes) {
    const perSecond = faults.value('bandwidth-bytes-per-second');
    if (perSecond === 0) {
      yield chunk;
      continue;
    }
    const pieceBytes = Math.max(1, Math.floor((perSecond * PACE_MS) / 1000));
    for (let at = 0; at < chunk.length; at += pieceBytes) {
      const piece = chunk.subarray(at, at + pieceBytes);
      // A connection that stalled does not catch up.
      dueMs = Math.max(dueMs, elapsedMs(clock, start) - PACE_MS) + (piece.length / perSecond) * 1000;
      await clock.sleep(Math.max(0, dueMs - elapsedMs(clock, start)), signal);
      yield piece;
    }
  }
}

async function* withWrongByte(
  bytes: AsyncIterable<Uint8Array>,
  position: number,
): AsyncGenerator<Uint8Array> {
  let at = 0;
  for await (const chunk of bytes) {
    const inChunk = position - at;
    at += chunk.length;
    if (inChunk < 0 || inChunk >= chunk.length) {
      yield chunk;
      continue;
    }
    // A copy, because the store may cache the chunk.
    const wrong = Uint8Array.from(chunk);
    wrong[inChunk] = (chunk[inChunk] ?? 0) ^ 1;
    yield wrong;
  }
}

/** Ends the connection after `afterBytes`; a shorter body is complete. */
async function* cut(bytes: AsyncIterable<Uint8Array>, afterBytes: number): AsyncGenerator<Uint8Array> {
  let leftBytes = afterBytes;
  for await (const chunk of bytes) {
    if (chunk.length > leftBytes) {
      if (leftBytes > 0) yield chunk.subarray(0, leftBytes);
      throw new ClientGone('the connection is cut (injected fault)');
    }
    leftBytes -= chunk.length;
    yield chunk;
  }
}
