import { createHash } from 'node:crypto';
import { type Html, html } from '../../util/html.ts';
import { AUTHORIZE_STYLE } from './authorize-style.ts';

/**
 * What the browser may do on these pages: show them and their one style sheet. No script runs, whatever the name of an
 * app may contain, and no site can frame them and have people press a button that they do not see. There is no
 * `form-action`: browsers hold redirects that follow a form to it too, and these lead to the app, and from there on.
 */
export const AUTHORIZE_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(AUTHORIZE_STYLE).digest('base64')}'`,
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Asks for an account's address and password. */
export interface SignInPage {
  readonly appName: string;
  /** Proves that the form is ours. */
  readonly formToken: string;
  readonly email?: string;
  /** What was wrong with what was typed last. */
  readonly problem?: string;
}

/** Asks whether the app may have what it wants. */
export interface ConsentPage {
  readonly appName: string;
  readonly formToken: string;
  readonly accountName: string;
  readonly email: string;
  /** In words for the account's owner; `isGrave` marks what cannot be undone. */
  readonly wishes: readonly { readonly text: string; readonly isGrave: boolean }[];
  /** Whether the app keeps its access until it is revoked. */
  readonly isLasting: boolean;
  /** Where the browser goes after it. */
  readonly returnsTo?: string;
  readonly problem?: string;
}

export function signInPage({ appName, formToken, email, problem }: SignInPage): string {
  return page(
    'Sign in',
    html`${monogram(appName)}
<h1>Sign in to go on to ${appName}</h1>
<p class="soft">${appName} asks for access to your files. Sign in first; it does not see your password.</p>
${problemText(problem)}
<form method="post">
<input type="hidden" name="form_token" value="${formToken}">
<label for="email">Email address</label>
<input id="email" name="email" type="email" autocomplete="username" value="${email ?? ''}" required${
      email === undefined ? AUTOFOCUS : undefined
    }>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required${
      email === undefined ? undefined : AUTOFOCUS
    }>
<p class="actions"><button class="primary" name="action" value="sign-in">Sign in</button><button name="action" value="cancel" formnovalidate>Cancel</button></p>
</form>`,
  );
}

export function consentPage(consent: ConsentPage): string {
  const { appName, formToken, accountName, email, wishes, isLasting, returnsTo, problem } = consent;
  return page(
    `Allow ${appName}?`,
    html`${monogram(appName)}
<h1>${appName} wants access to your account</h1>
${problemText(problem)}
<form method="post">
<input type="hidden" name="form_token" value="${formToken}">
<div class="account"><span>${accountName}<small>${email}</small></span><button class="plain" name="action" value="sign-out">Not you?</button></div>
<p class="soft">If you allow it, ${appName} will be able to:</p>
<ul>
${wishes.map(({ text, isGrave }) => (isGrave ? html`<li class="grave">${text}</li>\n` : html`<li>${text}</li>\n`))}</ul>
<p class="soft small">${
      isLasting
        ? 'It keeps this access until it is revoked.'
        : 'It has this access for four hours; then it has to ask again.'
    }${returnsTo === undefined ? undefined : html` Afterwards you go to <code>${returnsTo}</code>.`}</p>
<p class="actions"><button class="primary" name="action" value="allow">Allow</button><button name="action" value="cancel">Cancel</button></p>
</form>`,
  );
}

/** Shows an authorization code, for its owner to carry over to the app. */
export function codePage(appName: string, code: string): string {
  return page(
    'Your code',
    html`${monogram(appName)}
<h1>One step left</h1>
<p class="soft">Copy this code into ${appName}. It is good once, and for ten minutes.</p>
<output tabindex="0" aria-label="Code">${code}</output>
<p class="soft small">Give it to nobody else: it opens your account.</p>`,
  );
}

/** After a no where there is no app to go back to. */
export function refusedPage(appName: string): string {
  return page(
    'Nothing was allowed',
    html`${monogram(appName)}
<h1>Nothing was allowed</h1>
<p class="soft">${appName} has no access to your account. You can close this page.</p>`,
  );
}

/** A page that says what is wrong; `detail` is for whoever wrote the app. */
export function noticePage(title: string, text: string, detail?: string): string {
  return page(
    title,
    html`<p class="monogram bad" aria-hidden="true">!</p>
<h1>${title}</h1>
<p class="soft">${text}</p>
${detail === undefined ? undefined : html`<p class="small"><code>${detail}</code></p>`}`,
  );
}

/** ` autofocus`, as markup. */
const AUTOFOCUS = html` autofocus`;

function monogram(appName: string): Html {
  const letter = Array.from(appName.trim())[0] ?? '?';
  return html`<p class="monogram" aria-hidden="true">${letter.toUpperCase()}</p>`;
}

function problemText(problem: string | undefined): Html | undefined {
  return problem === undefined ? undefined : html`<p class="problem" role="alert">${problem}</p>`;
}

function page(title: string, content: Html): string {
  // The style sheet is ours, without a character to escape; its hash in the policy must be of these bytes.
  const style = { markup: `<style>${AUTHORIZE_STYLE}</style>` };
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>${title} · davgate</title>
${style}
</head>
<body><main>
${content}
</main>
<footer>davgate storage service</footer>
</body>
</html>
`.markup;
}
