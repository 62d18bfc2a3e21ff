import { answerJson, type Route } from './route.ts';

/**
 * `drive`: the user, the token of the session, whether a deletion there can be undone, whether writes may wait,
 * whether the user can make app passwords, and the folders that the user may change or only read, with everything below them.
 */
export const driveInfo: Route = {
  method: 'GET',
  run: ({ exchange, user, csrfToken, appPasswordsOf, drive: { name, history, keptWrites, places } }) =>
    answerJson(exchange, {
      user: user ?? null,
      csrfToken,
      drive: name,
      keepsDeleted: history.keepsDeleted,
      keepsWrites: keptWrites !== undefined,
      places,
      hasAppPasswords: csrfToken !== undefined && user !== undefined && appPasswordsOf(user) !== undefined,
    }),
};
