import { answerJson, type Route } from './route.ts';

/**
 * `drive`: the user, the token of the session, the provider at which it began, whether writes may wait, whether the user can make
 * app passwords and upload links, the folders that the user may change or only read, with everything below them, and whether a
 * deletion there can be undone, and the folders that the application does not show.
 */
export const driveInfo: Route = {
  method: 'GET',
  run: ({ exchange, user, csrfToken, providerName, appPasswordsOf, uploadLinksOf, drive }) =>
    answerJson(exchange, {
      user: user ?? null,
      csrfToken,
      providerName,
      drive: drive.name,
      keepsWrites: drive.keptWrites !== undefined,
      places: drive.places,
      hiddenPaths: drive.hiddenPaths,
      hasAppPasswords:
        csrfToken !== undefined && user !== undefined && appPasswordsOf(user, drive) !== undefined,
      hasUploadLinks: uploadLinksOf(user, drive) !== undefined,
    }),
};
