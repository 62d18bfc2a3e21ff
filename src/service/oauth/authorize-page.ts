import { hashSource } from '../../util/content-policy.ts';
import { type Html, html, htmlDocument } from '../../util/html.ts';
import { ICON, LOOK } from '../../util/look.ts';

/** The style sheet of the consent pages, in light and dark. */
const AUTHORIZE_STYLE = `${LOOK}
body { min-height: 100vh; display: grid; grid-template-rows: 1fr auto; }
.card { width: 100%; }
.monogram { display: grid; place-items: center; width: 3.5rem; height: 3.5rem; border-radius: 14px; background: var(--accent); font-size: 1.5rem; font-weight: 700; line-height: 1; }
.card > .monogram { margin: 0 0 1rem; color: var(--on-accent); }
.card > .monogram.bad { background: var(--bad); color: var(--paper); }
.card > .problem { margin-top: 1rem; }
.card form p { margin: 0; }
.small { font-size: .875rem; }
.account { display: flex; align-items: center; justify-content: space-between; gap: .75rem; padding: .7rem .9rem; border: 1px solid var(--line); border-radius: 8px; }
.account span { min-width: 0; line-height: 1.35; }
.account small { display: block; color: var(--soft); font-size: .875rem; }
ul { margin: 0; padding: 0; list-style: none; }
li { position: relative; padding: .5rem 0 .5rem 1.9rem; line-height: 1.4; }
li + li { border-top: 1px solid var(--line); }
li::before { content: ""; position: absolute; left: .3rem; top: .85rem; width: .75rem; height: .35rem; border: solid var(--accent); border-width: 0 0 2.5px 2.5px; transform: rotate(-45deg); }
li.grave::before { content: "!"; top: .5rem; left: .45rem; width: auto; height: auto; border: 0; transform: none; color: var(--bad); font-weight: 800; }
.card form .actions { flex-direction: row-reverse; margin-top: .75rem; }
.actions .button { flex: 1 1 8rem; }
.button.plain { min-height: 0; padding: .2rem 0; border: 0; background: none; color: var(--accent); }
.button.plain:hover { text-decoration: underline; }
output { display: block; margin: 1.25rem 0; padding: 1rem .5rem; border: 1px dashed var(--accent); border-radius: 8px; background: var(--chosen); font: .8rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; text-align: center; overflow-wrap: anywhere; -webkit-user-select: all; user-select: all; }
code { padding: .1rem .35rem; border-radius: 5px; background: var(--ground); font: .875em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
footer { padding: 0 1rem 1.5rem; color: var(--soft); font-size: .8rem; text-align: center; }
`;

/**
 * Content-Security-Policy of these pages: no scripts, whatever an app's name contains, and no frames, so that no site
 * can make people press a button that they do not see. There is no `form-action`, because browsers apply it also to
 * redirects after a form, and these lead to the app and from there anywhere.
 */
export const AUTHORIZE_PAGE_POLICY = [
  "default-src 'none'",
  `style-src ${hashSource(AUTHORIZE_STYLE)}`,
  'img-src data:',
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** The page that asks for an account's address and password. */
export interface SignInPage {
  readonly appName: string;
  /** Proves that the form came from this page. */
  readonly formToken: string;
  readonly email?: string;
  /** The reason why the last attempt was refused. */
  readonly problem?: string;
}

/** The page that asks whether the app may have the access it requests. */
export interface ConsentPage {
  readonly appName: string;
  readonly formToken: string;
  readonly accountName: string;
  readonly email: string;
  /** The access in words for the account's owner; `isGrave` marks what cannot be undone. */
  readonly wishes: readonly { readonly text: string; readonly isGrave: boolean }[];
  /** Whether the app keeps its access until it is revoked. */
  readonly isLasting: boolean;
  /** The site to which the browser returns. */
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
<p class="actions"><button class="button primary" name="action" value="sign-in">Sign in</button><button class="button" name="action" value="cancel" formnovalidate>Cancel</button></p>
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
<div class="account"><span>${accountName}<small>${email}</small></span><button class="button plain" name="action" value="sign-out">Not you?</button></div>
<p class="soft">If you allow it, ${appName} will be able to:</p>
<ul>
${wishes.map(({ text, isGrave }) => (isGrave ? html`<li class="grave">${text}</li>\n` : html`<li>${text}</li>\n`))}</ul>
<p class="soft small">${
      isLasting
        ? 'It keeps this access until it is revoked.'
        : 'It has this access for four hours; then it has to ask again.'
    }${returnsTo === undefined ? undefined : html` Afterwards you go to <code>${returnsTo}</code>.`}</p>
<p class="actions"><button class="button primary" name="action" value="allow">Allow</button><button class="button" name="action" value="cancel">Cancel</button></p>
</form>`,
  );
}

/** Returns the page that shows an authorization code, which the owner copies to the app. */
export function codePage(appName: string, code: string): string {
  return page(
    'Your code',
    html`${monogram(appName)}
<h1>One step left</h1>
<p class="soft">Copy this code into ${appName}. It can be used once, within ten minutes.</p>
<output tabindex="0" aria-label="Code">${code}</output>
<p class="soft small">Do not share it: it gives access to your account.</p>`,
  );
}

/** Returns the page after a refusal, for an app without a redirect URI. */
export function refusedPage(appName: string): string {
  return page(
    'Nothing was allowed',
    html`${monogram(appName)}
<h1>Nothing was allowed</h1>
<p class="soft">${appName} has no access to your account. You can close this page.</p>`,
  );
}

/** Returns a page with an error; `detail` is for the app's developer. */
export function noticePage(title: string, text: string, detail?: string): string {
  return page(
    title,
    html`<p class="monogram bad" aria-hidden="true">!</p>
<h1>${title}</h1>
<p class="soft">${text}</p>
${detail === undefined ? undefined : html`<p class="small"><code>${detail}</code></p>`}`,
  );
}

/** The attribute as markup. */
const AUTOFOCUS = html` autofocus`;

function monogram(appName: string): Html {
  const letter = Array.from(appName.trim())[0] ?? '?';
  return html`<p class="monogram" aria-hidden="true">${letter.toUpperCase()}</p>`;
}

function problemText(problem: string | undefined): Html | undefined {
  return problem === undefined ? undefined : html`<p class="problem" role="alert">${problem}</p>`;
}

function page(title: string, content: Html): string {
  return htmlDocument({
    title: `${title} · davgate`,
    style: AUTHORIZE_STYLE,
    head: html`<link rel="icon" href="${ICON}">\n`,
    body: html`<body><main><div class="card">
${content}
</div></main>
<footer>davgate storage service</footer>
</body>`,
  });
}
