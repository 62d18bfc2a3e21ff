import { createHash } from 'node:crypto';
import { type Html, html, htmlDocument } from '../../util/html.ts';

/** The style sheet of the consent pages, in light and dark. */
const AUTHORIZE_STYLE = `
:root { color-scheme: light dark; --ink: #1b2230; --soft: #596273; --paper: #fff; --ground: #eef1f6; --line: #d9dfe8; --accent: #1f5fd6; --accent-ink: #fff; --accent-hover: #174db3; --tint: #eaf1fe; --bad: #b3261e; --bad-tint: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf3; --soft: #a3adbd; --paper: #1a1f29; --ground: #10141b; --line: #323b4a; --accent: #7aa7ff; --accent-ink: #0c1526; --accent-hover: #97baff; --tint: #202c44; --bad: #ffb4ab; --bad-tint: #3b1f1d; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; grid-template-rows: 1fr auto; justify-items: center; align-items: center; padding: 1.5rem 1rem; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; -webkit-text-size-adjust: 100%; }
main { width: 100%; max-width: 27rem; padding: 2.25rem; background: var(--paper); border: 1px solid var(--line); border-radius: 18px; box-shadow: 0 1px 2px rgb(0 0 0 / .05), 0 12px 32px rgb(20 30 60 / .08); }
.monogram { display: grid; place-items: center; width: 3.25rem; height: 3.25rem; margin: 0 0 1.25rem; border-radius: 14px; background: var(--accent); color: var(--accent-ink); font-size: 1.5rem; font-weight: 700; line-height: 1; }
.monogram.bad { background: var(--bad-tint); color: var(--bad); }
h1 { margin: 0 0 .5rem; font-size: 1.45rem; font-weight: 650; line-height: 1.25; letter-spacing: -.01em; overflow-wrap: anywhere; text-wrap: balance; }
p { margin: 0 0 1rem; }
main > :last-child, form > :last-child { margin-bottom: 0; }
.soft { color: var(--soft); overflow-wrap: anywhere; }
.small { font-size: .875rem; }
.account { display: flex; align-items: center; justify-content: space-between; gap: .75rem; margin: 1.25rem 0; padding: .7rem .9rem; border: 1px solid var(--line); border-radius: 12px; }
.account span { min-width: 0; overflow-wrap: anywhere; line-height: 1.35; }
.account span small { display: block; color: var(--soft); font-size: .85rem; }
ul { list-style: none; margin: .5rem 0 1.25rem; padding: 0; }
li { position: relative; padding: .5rem 0 .5rem 1.9rem; line-height: 1.4; }
li + li { border-top: 1px solid var(--line); }
li::before { content: ""; position: absolute; left: .3rem; top: .85rem; width: .75rem; height: .35rem; border: solid var(--accent); border-width: 0 0 2.5px 2.5px; transform: rotate(-45deg); }
li.grave::before { content: "!"; top: .5rem; left: .45rem; width: auto; height: auto; border: 0; transform: none; color: var(--bad); font-weight: 800; }
label { display: block; margin: 1rem 0 .35rem; font-size: .9rem; font-weight: 600; }
input:not([type=hidden]) { width: 100%; padding: .7rem .85rem; border: 1px solid var(--line); border-radius: 10px; background: var(--ground); color: inherit; font: inherit; }
.actions { display: flex; flex-flow: row-reverse wrap; gap: .75rem; margin-top: 1.5rem; }
button { flex: 1 1 8rem; padding: .72rem 1.2rem; border: 1px solid var(--line); border-radius: 10px; background: transparent; color: inherit; font: inherit; font-weight: 600; cursor: pointer; }
button:hover { background: var(--ground); }
button.primary { border-color: transparent; background: var(--accent); color: var(--accent-ink); }
button.primary:hover { background: var(--accent-hover); }
button.plain { flex: none; padding: .2rem 0; border: 0; color: var(--accent); font-size: .875rem; }
button.plain:hover { background: none; text-decoration: underline; }
button:focus-visible, input:focus-visible, output:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.problem { margin: 1.25rem 0 0; padding: .7rem .9rem; border-radius: 10px; background: var(--bad-tint); color: var(--bad); font-size: .925rem; }
output { display: block; margin: 1.25rem 0; padding: 1rem .5rem; border: 1px dashed var(--accent); border-radius: 12px; background: var(--tint); font: .8rem/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; text-align: center; overflow-wrap: anywhere; -webkit-user-select: all; user-select: all; }
code { padding: .1rem .35rem; border-radius: 6px; background: var(--ground); font: .875em ui-monospace, "SF Mono", Menlo, Consolas, monospace; overflow-wrap: anywhere; }
footer { padding-top: 1.5rem; color: var(--soft); font-size: .8rem; text-align: center; }
@media (max-width: 30rem) { body { padding: 0; background: var(--paper); align-items: start; } main { padding: 1.75rem 1.25rem; border: 0; border-radius: 0; box-shadow: none; } footer { padding: 1rem; } }
`;

/**
 * Content-Security-Policy of these pages: no scripts, whatever an app's name contains, and no frames, so that no site
 * can make people press a button that they do not see. There is no `form-action`, because browsers apply it also to
 * redirects after a form, and these lead to the app and from there anywhere.
 */
export const AUTHORIZE_PAGE_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(AUTHORIZE_STYLE).digest('base64')}'`,
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
    body: html`<body><main>
${content}
</main>
<footer>davgate storage service</footer>
</body>`,
  });
}
