/** An object store has refused a request, or not answered it. */
export class BucketError extends Error {
  override readonly name = 'BucketError';

  constructor(
    message: string,
    /** Status of the answer; `undefined` without one. */
    readonly status?: number,
    /** The store's word for the refusal, like `NoSuchKey`. */
    readonly refusal = '',
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
