import { answerJson, type Route } from './route.ts';

/** `drive`: whose drive the page shows, the token of its session, and whether a deletion there can be undone. */
export const driveInfo: Route = {
  method: 'GET',
  run: ({ exchange, user, csrfToken, drive: { name, history } }) =>
    answerJson(exchange, {
      user: user ?? null,
      csrfToken,
      drive: name,
      keepsDeleted: history.keepsDeleted,
    }),
};
