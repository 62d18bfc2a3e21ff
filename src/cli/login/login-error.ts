/** A login that came to nothing; `message` is one line that says why and what to do. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
}
