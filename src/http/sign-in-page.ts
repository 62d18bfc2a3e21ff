import type { OutgoingHttpHeaders } from 'node:http';
import { hashSource } from '../util/content-policy.ts';
import { html, htmlDocument } from '../util/html.ts';
import { ICON, LOOK } from '../util/look.ts';

/** The words of the page. A further language is one more table: the compiler names what is missing. `{0}` is a number. */
const ENGLISH = {
  title: 'Sign in',
  text: 'Sign in with your user name and password to open this drive.',
  user: 'User name',
  password: 'Password',
  signIn: 'Sign in',
  wrong: 'That user name and password do not belong together. Check both and try again.',
  wait: 'There were too many wrong passwords. Try again in {0} seconds.',
  foreign: 'The form did not come from this page. Please sign in here.',
  unavailable: 'The password cannot be checked at the moment. Try again in a few seconds.',
  appPassword: 'App passwords are for other programs. Sign in with your own password here.',
  goOn: 'Go on to the drive',
};

type Messages = Readonly<Record<keyof typeof ENGLISH, string>>;

const GERMAN: Messages = {
  title: 'Anmelden',
  text: 'Bitte mit Benutzername und Passwort anmelden, um das Laufwerk zu öffnen.',
  user: 'Benutzername',
  password: 'Passwort',
  signIn: 'Anmelden',
  wrong: 'Benutzername und Passwort passen nicht zusammen. Bitte beide prüfen und noch einmal versuchen.',
  wait: 'Das waren zu viele falsche Passwörter. Bitte in {0} Sekunden noch einmal versuchen.',
  foreign: 'Das Formular kam nicht von dieser Seite. Bitte hier anmelden.',
  unavailable: 'Das Passwort kann gerade nicht geprüft werden. Bitte gleich noch einmal versuchen.',
  appPassword: 'App-Passwörter sind für andere Programme. Bitte hier mit dem eigenen Passwort anmelden.',
  goOn: 'Weiter zum Laufwerk',
};

const TABLES: ReadonlyMap<string, Messages> = new Map([
  ['en', ENGLISH],
  ['de', GERMAN],
]);

/** Why the last form was refused; for `wait` with the time until the next try, in seconds. */
export type SignInProblem =
  | 'wrong'
  | 'foreign'
  | 'unavailable'
  | 'appPassword'
  | { readonly waitSeconds: number };

export interface SignInPage {
  /** Where the form goes. */
  readonly action: string;
  /** The address that the browser asked for, a path. */
  readonly to: string;
  readonly acceptLanguage: string | undefined;
  /** The name that was typed last. */
  readonly name?: string;
  readonly problem?: SignInProblem;
}

/** Scripts never run on the page, and no other page shows it in a frame. */
export const SIGN_IN_PAGE_HEADERS: Readonly<OutgoingHttpHeaders> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src ${hashSource(LOOK)}`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  // Browsers hide the origin of a form, which is checked, from a page without a referrer.
  'Referrer-Policy': 'same-origin',
  'Cache-Control': 'no-store',
};

/** Returns the page that asks for a user name and a password, in the first language of the browser that has a table. */
export function signInPage({ action, to, acceptLanguage, name = '', problem }: SignInPage): string {
  const { language, messages } = messagesFor(acceptLanguage);
  const reason = problem === undefined ? undefined : problemText(problem, messages);
  const focus = html` autofocus`;
  return htmlDocument({
    language,
    title: messages.title,
    style: LOOK,
    head: html`<link rel="icon" href="${ICON}">\n`,
    body: html`<body><main><div class="card">
${DRIVE_ICON}
<h1>${messages.title}</h1>
<p>${messages.text}</p>
<form method="post" action="${action}">
<input type="hidden" name="to" value="${to}">
<label for="name">${messages.user}</label>
<input id="name" name="name" autocomplete="username" autocapitalize="none" spellcheck="false" value="${name}" required${name === '' ? focus : undefined}>
<label for="password">${messages.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${name === '' ? undefined : focus}>
${reason === undefined ? undefined : html`<p class="problem" role="alert">${reason}</p>`}
<button class="button primary">${messages.signIn}</button>
</form>
</div></main></body>`,
  });
}

/**
 * Returns a page that goes on to `address` by itself. A browser that followed a link of another site sends no cookie of
 * ours; it does when this page leads it on.
 */
export function relayPage(address: string, acceptLanguage: string | undefined): string {
  const { language, messages } = messagesFor(acceptLanguage);
  return htmlDocument({
    language,
    title: messages.title,
    style: LOOK,
    head: html`<meta http-equiv="refresh" content="0; url=${address}">\n<link rel="icon" href="${ICON}">\n`,
    body: html`<body><main><div class="card"><a class="button primary" href="${address}">${messages.goOn}</a></div></main></body>`,
  });
}

/** The folder of the page's icon. */
const DRIVE_ICON = html`<svg class="icon" viewBox="0 0 38 38" aria-hidden="true"><path fill="#4a8df0" opacity=".75" d="M4 11a3 3 0 0 1 3-3h8l4 4h12a3 3 0 0 1 3 3v4H4z"/><path fill="#6fa5f7" d="M4 15h30v13a3 3 0 0 1-3 3H7a3 3 0 0 1-3-3z"/></svg>`;

function problemText(problem: SignInProblem, messages: Messages): string {
  return typeof problem === 'string'
    ? messages[problem]
    : messages.wait.replace('{0}', String(problem.waitSeconds));
}

function messagesFor(acceptLanguage = ''): { readonly language: string; readonly messages: Messages } {
  const wanted = acceptLanguage.split(',').map((item) => item.trim().slice(0, 2).toLowerCase());
  const language = wanted.find((tag) => TABLES.has(tag)) ?? 'en';
  return { language, messages: TABLES.get(language) ?? ENGLISH };
}
