import { DavError } from '../dav/errors.ts';
import { answerJson, type Context, type OwnAppPasswords, type Route } from './route.ts';

/** Maximum length of the name of an app password, in characters. */
const NAME_MAX = 100;

/** `app-passwords`: the app passwords of the user, without the passwords themselves. */
export const appPasswords: Route = {
  method: 'GET',
  async run(context) {
    await answerJson(context.exchange, { appPasswords: await ownOf(context).list() });
  },
};

/** `make-app-password`: makes one with a `name`. Its answer is the only one with the password. */
export const makeAppPassword: Route = {
  method: 'POST',
  async run(context) {
    const own = ownOf(context);
    const name = context.input.text('name').trim();
    if (name === '' || name.length > NAME_MAX || /\p{Cc}/u.test(name))
      throw new DavError(400, `"name" must be text of 1 to ${NAME_MAX} characters in one line`);
    const password = await own.make(name);
    if (password === undefined)
      throw new DavError(409, 'you have as many app passwords as davgate keeps for a user; end one first');
    context.log.info('app password made', { user: context.user, name });
    await answerJson(context.exchange, { password });
  },
};

/** `end-app-password`: ends the one with this `id`. It answers 404 if there is none. */
export const endAppPassword: Route = {
  method: 'POST',
  async run(context) {
    const isThere = await ownOf(context).end(context.input.text('id'));
    if (!isThere) throw new DavError(404, 'there is no such app password any more');
    context.log.info('app password ended', { user: context.user });
    await answerJson(context.exchange, {});
  },
};

/** Throws `DavError` 403, also for an app password itself: with a stolen one nobody can make others. */
function ownOf({ user, csrfToken, drive, appPasswordsOf }: Context): OwnAppPasswords {
  const own = user === undefined || csrfToken === undefined ? undefined : appPasswordsOf(user, drive);
  if (own) return own;
  throw new DavError(
    403,
    'only users of the configuration who sign in on the page of this davgate, with the drives named there, can have app passwords',
  );
}
