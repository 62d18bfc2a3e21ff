import type { OutgoingHttpHeaders } from 'node:http';
import Negotiator from 'negotiator';
import { hashSource } from '../util/content-policy.ts';
import { type Html, html, htmlDocument } from '../util/html.ts';
import { ICON, LOOK, type PageLook } from '../util/look.ts';

/**
 * The words of the page. A further language is one more table: the compiler names what is missing. `{0}` is a number or a
 * name.
 */
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
  textWithout: 'Sign in to open this drive.',
  signInWith: 'Sign in with {0}',
  away: '{0} does not answer at the moment. Try again in a few seconds.',
  denied: 'The sign-in with {0} was cancelled.',
  expired: 'This sign-in took too long, or began in another browser. Please try again.',
  unverified: 'Your e-mail address is not confirmed at {0}. Confirm it there, and try again.',
  failed: 'The sign-in with {0} has failed. If it fails again, ask the administrator of this drive for help.',
  unknownUser:
    '“{0}” is not a user of this drive. Ask its administrator, or sign out of that account and use another one.',
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
  textWithout: 'Bitte anmelden, um das Laufwerk zu öffnen.',
  signInWith: 'Mit {0} anmelden',
  away: '{0} antwortet gerade nicht. Bitte gleich noch einmal versuchen.',
  denied: 'Die Anmeldung mit {0} wurde abgebrochen.',
  expired:
    'Diese Anmeldung hat zu lange gedauert oder in einem anderen Browser begonnen. Bitte noch einmal versuchen.',
  unverified:
    'Die E-Mail-Adresse ist bei {0} nicht bestätigt. Bitte dort bestätigen und noch einmal versuchen.',
  failed:
    'Die Anmeldung mit {0} ist fehlgeschlagen. Wenn es noch einmal passiert, hilft die Verwaltung dieses Laufwerks.',
  unknownUser:
    '„{0}“ ist kein Benutzer dieses Laufwerks. Bitte die Verwaltung fragen, oder dieses Konto abmelden und ein anderes benutzen.',
};

const TABLES: ReadonlyMap<string, Messages> = new Map([
  ['en', ENGLISH],
  ['de', GERMAN],
]);

/** The status of the page for each problem with a password. */
const PASSWORD_STATUS = {
  wrong: 401,
  foreign: 403,
  unavailable: 503,
  appPassword: 401,
} as const;

/** The same for each problem with a sign-in at the provider. */
const PROVIDER_STATUS = {
  away: 503,
  denied: 403,
  expired: 400,
  unverified: 403,
  failed: 502,
} as const;

/**
 * Why the last sign-in failed: a password is wrong, or cannot be checked; the person has to wait for the next try; or the
 * provider's answer names nobody who may sign in.
 */
export type SignInProblem =
  | keyof typeof PASSWORD_STATUS
  | keyof typeof PROVIDER_STATUS
  | { readonly waitSeconds: number }
  | { readonly unknownUser: string };

export interface SignInPage {
  /** The address that the browser asked for, a path. */
  readonly to: string;
  /** The name that was typed last. */
  readonly name?: string | undefined;
  readonly problem?: SignInProblem | undefined;
}

/** The ways to sign in. */
export interface SignInWays {
  /** Where the form with name and password goes; `undefined`: nobody has a password. */
  readonly formAction: string | undefined;
  /** Another server at which people sign in. */
  readonly provider: { readonly name: string; readonly address: string } | undefined;
}

/** Returns the header of the page. Scripts never run on it, and no other page shows it in a frame. */
export function signInPageHeaders(
  look: PageLook,
  acceptLanguage: string | undefined,
): Readonly<OutgoingHttpHeaders> {
  return {
    'Content-Type': 'text/html; charset=utf-8',
    'Content-Language': messagesFor(acceptLanguage).language,
    'Content-Security-Policy': [
      "default-src 'none'",
      `style-src ${hashSource(styleOf(look))}`,
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
}

/** Returns the status of the page with a problem, or of one that only asks, and how long the person should wait, in seconds. */
export function statusOf(problem: SignInProblem = 'wrong'): {
  readonly status: number;
  readonly waitSeconds?: number;
} {
  if (typeof problem === 'string') {
    const status = { ...PASSWORD_STATUS, ...PROVIDER_STATUS }[problem];
    return { status, ...(status === 503 && { waitSeconds: 5 }) };
  }
  return 'waitSeconds' in problem ? { status: 429, ...problem } : { status: 403 };
}

/** Returns the page that asks to sign in, in the first language of the browser that has a table. */
export function signInPage(
  { to, name = '', problem }: SignInPage,
  { formAction, provider }: SignInWays,
  look: PageLook,
  acceptLanguage: string | undefined,
): string {
  const { language, messages } = messagesFor(acceptLanguage);
  const alert =
    problem && html`<p class="problem" role="alert">${problemText(problem, messages, provider?.name)}</p>\n`;
  const isOfForm = formAction !== undefined && !isOfProvider(problem);
  const query = String(new URLSearchParams({ to }));
  const focus = html` autofocus`;
  const form =
    formAction === undefined
      ? undefined
      : html`<form method="post" action="${formAction}">
<input type="hidden" name="to" value="${to}">
<label for="name">${messages.user}</label>
<input id="name" name="name" autocomplete="username" autocapitalize="none" spellcheck="false" value="${name}" required${name === '' ? focus : undefined}>
<label for="password">${messages.password}</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${name === '' ? undefined : focus}>
${isOfForm ? alert : undefined}<button class="button primary">${messages.signIn}</button>
</form>
`;
  const link =
    provider &&
    html`<a class="button provider${form ? '' : ' primary'}" href="${provider.address}?${query}"${form ? undefined : focus}>${filled(messages.signInWith, provider.name)}</a>
`;
  return htmlDocument({
    language,
    title: look.name === undefined ? messages.title : `${messages.title} – ${look.name}`,
    style: styleOf(look),
    head: iconOf(look),
    body: html`<body><main><div class="card">
${look.logo === undefined ? DRIVE_ICON : html`<img class="icon" src="${look.logo}" alt="">`}
${look.name === undefined ? undefined : html`<p class="brand">${look.name}</p>\n`}<h1>${messages.title}</h1>
<p>${form ? messages.text : messages.textWithout}</p>
${form}${isOfForm ? undefined : alert}${link}</div></main></body>`,
  });
}

/**
 * Returns a page that goes on to `address` by itself. A browser that followed a link of another site sends no cookie of
 * ours; it does when this page leads it on.
 */
export function relayPage(address: string, look: PageLook, acceptLanguage: string | undefined): string {
  const { language, messages } = messagesFor(acceptLanguage);
  return htmlDocument({
    language,
    title: messages.title,
    style: styleOf(look),
    head: html`<meta http-equiv="refresh" content="0; url=${address}">\n${iconOf(look)}`,
    body: html`<body><main><div class="card"><a class="button primary" href="${address}">${messages.goOn}</a></div></main></body>`,
  });
}

function styleOf({ accentStyle }: PageLook): string {
  return LOOK + accentStyle;
}

function iconOf({ logo = ICON }: PageLook): Html {
  return html`<link rel="icon" href="${logo}">\n`;
}

/** The folder of the page's icon. */
const DRIVE_ICON = html`<svg class="icon" viewBox="0 0 38 38" aria-hidden="true"><path fill="#4a8df0" opacity=".75" d="M4 11a3 3 0 0 1 3-3h8l4 4h12a3 3 0 0 1 3 3v4H4z"/><path fill="#6fa5f7" d="M4 15h30v13a3 3 0 0 1-3 3H7a3 3 0 0 1-3-3z"/></svg>`;

function isOfProvider(problem: SignInProblem | undefined): boolean {
  if (problem === undefined) return false;
  return typeof problem === 'string' ? problem in PROVIDER_STATUS : 'unknownUser' in problem;
}

function problemText(problem: SignInProblem, messages: Messages, provider = ''): string {
  if (typeof problem === 'string') return filled(messages[problem], provider);
  if ('unknownUser' in problem) return filled(messages.unknownUser, problem.unknownUser);
  return filled(messages.wait, String(problem.waitSeconds));
}

function filled(message: string, value: string): string {
  return message.replace('{0}', () => value);
}

function messagesFor(acceptLanguage = ''): { readonly language: string; readonly messages: Messages } {
  const headers = { 'accept-language': acceptLanguage };
  const language = new Negotiator({ headers }).language([...TABLES.keys()]) ?? 'en';
  return { language, messages: TABLES.get(language) ?? ENGLISH };
}
