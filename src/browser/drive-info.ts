import { answerJson, type Route } from './route.ts';

/** `drive`: whose drive the page shows, and whether a deletion there can be undone. */
export const driveInfo: Route = {
  method: 'GET',
  run: ({ exchange, user, drive: { name, history } }) =>
    answerJson(exchange, { user: user ?? null, drive: name, keepsDeleted: history.keepsDeleted }),
};
