/**
 * The same bytes with the first of them read already: before anything is promised, what fails at once can
 * still be answered for. The caller must read them to the end or return the iterator.
 */
export async function primed(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const iterator = bytes[Symbol.asyncIterator]();
  const read: IteratorResult<Uint8Array>[] = [await iterator.next()];
  return {
    [Symbol.asyncIterator]: () => ({
      next: async () => read.shift() ?? (await iterator.next()),
      return: async () => {
        await iterator.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}
