import { answerJson, type Route } from './route.ts';

/** `drive`: whose drive the page shows. */
export const driveInfo: Route = {
  method: 'GET',
  run: ({ exchange, user, drive }) => answerJson(exchange, { user: user ?? null, drive: drive.name }),
};
