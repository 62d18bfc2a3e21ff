/** `body`, whose end is told when `last` has resolved; what `last` throws, reading it throws. */
export async function* endedBy(
  body: AsyncIterable<Uint8Array>,
  last: () => Promise<void>,
): AsyncIterable<Uint8Array> {
  yield* body;
  await last();
}
