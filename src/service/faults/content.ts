import { type Answer, ClientGone, isContent } from '../../http/exchange.ts';
import { elapsedMs } from '../../util/clock.ts';
import type { Faults } from './faults.ts';

/** So often a slow line gets its next bytes. */
const PACE_MS = 20;

/** A download as the faults have it: slow, with a wrong byte, or cut. */
export function contentWithFaults(faults: Faults, answer: Answer, signal: AbortSignal): Answer {
  const { body } = answer;
  if (!isContent(body) || body.sizeBytes === 0) return answer;
  const { sizeBytes } = body;
  let { bytes } = body;
  if (faults.happens('corrupt-share')) bytes = withWrongByte(bytes, faults.random(sizeBytes));
  if (faults.happens('cut-share')) {
    const afterBytes = faults.value('cut-after-bytes') || faults.random(sizeBytes);
    bytes = cut(bytes, afterBytes);
  }
  return { ...answer, body: { sizeBytes, bytes: paced(faults, bytes, signal) } };
}

/** The same bytes, no faster than one connection carries. */
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
      // A line that stood still does not catch up.
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
    // A copy: the store may keep the chunk.
    const wrong = Uint8Array.from(chunk);
    wrong[inChunk] = (chunk[inChunk] ?? 0) ^ 1;
    yield wrong;
  }
}

/** Ends the connection after so many bytes; what is no longer than that comes whole. */
async function* cut(bytes: AsyncIterable<Uint8Array>, afterBytes: number): AsyncGenerator<Uint8Array> {
  let leftBytes = afterBytes;
  for await (const chunk of bytes) {
    if (chunk.length > leftBytes) {
      if (leftBytes > 0) yield chunk.subarray(0, leftBytes);
      throw new ClientGone('the line is cut');
    }
    leftBytes -= chunk.length;
    yield chunk;
  }
}
