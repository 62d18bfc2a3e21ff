/** A login or logout failed; `message` is one line that says why and what to do. */
export class LoginError extends Error {
  override readonly name = 'LoginError';
}
