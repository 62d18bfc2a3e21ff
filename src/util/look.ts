import { contrastOf, lightenedFor, TEXT_CONTRAST_MIN } from './colour.ts';

/**
 * The look that all pages of davgate share, light and dark: colours, type, buttons, fields, and the card of a page that
 * asks or says one thing. `npm run build` puts it before the style sheet of the web application.
 */
export const LOOK = `
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5c6675; --paper: #fff; --ground: #f3f5f8; --line: #dfe4ea; --accent: #1f5fd6; --on-accent: #fff; --bad: #c6372f; --chosen: #e3edfd; --keyword: #a02c8a; --string: #24743b; --number: #9a4d00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf0; --soft: #a0a9b8; --paper: #1b2029; --ground: #11151b; --line: #303846; --accent: #7aa7ff; --on-accent: #0d1420; --bad: #ff8a80; --chosen: #23344f; --keyword: #e08bd0; --string: #8ccf9b; --number: #e8b173; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; -webkit-text-size-adjust: 100%; }
a { color: var(--accent); }
svg { display: block; }
:is(a, button, input, textarea, output, pre, article, [role="row"]):focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.soft { color: var(--soft); }
.problem { margin: 0; color: var(--bad); }
.button { display: inline-flex; align-items: center; justify-content: center; gap: .45rem; min-height: 2.4rem; padding: .35rem .9rem; border: 1px solid var(--line); border-radius: 8px; background: var(--paper); color: var(--ink); font: inherit; font-size: .9375rem; font-weight: 600; text-decoration: none; white-space: nowrap; cursor: pointer; }
.button:hover { border-color: var(--accent); }
.button:disabled { opacity: .5; }
.button.primary { border-color: var(--accent); background: var(--accent); color: var(--on-accent); }
.button.primary:hover { filter: brightness(1.08); }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; }
.card { max-width: 30rem; margin: 10vh auto; padding: 2rem; border: 1px solid var(--line); border-radius: 14px; background: var(--paper); overflow-wrap: anywhere; }
.card h1 { margin: 0; font-size: 1.35rem; line-height: 1.3; }
.card > p { margin: .5rem 0 0; color: var(--soft); }
.card > .icon { width: 3.5rem; height: 3.5rem; margin: 0 0 1rem; object-fit: contain; }
.card > .brand { margin: 0 0 .25rem; font-weight: 600; }
.card > .problem, .card form .problem { color: var(--bad); }
.card form { display: grid; gap: .6rem; margin-top: 1.25rem; }
.card label { font-size: .9375rem; font-weight: 600; }
.card input + label { margin-top: .4rem; }
.card input:not([type=hidden]) { width: 100%; min-height: 2.4rem; padding: .45rem .75rem; border: 1px solid var(--line); border-radius: 8px; background: var(--ground); color: inherit; font: inherit; }
.card form > .button { margin-top: .4rem; }
.card > .provider { width: 100%; margin-top: .9rem; white-space: normal; }
@media (max-width: 34rem) { main:has(> .card) { padding: 0; } main > .card { margin: 0; max-width: none; padding: 2rem 1.25rem; border-width: 0 0 1px; border-radius: 0; } }
`;

/** The grounds of `LOOK` on which text has the accent's colour, or that text on the accent has, light and dark. */
const GROUNDS = {
  light: ['#ffffff', '#f3f5f8', '#e3edfd'],
  dark: ['#1b2029', '#11151b', '#23344f', '#0d1420'],
};

/** Whether text can be read in this colour, and on it, where the browser is light. */
export function canBeAccent(colour: string): boolean {
  return GROUNDS.light.every((ground) => contrastOf(colour, ground) >= TEXT_CONTRAST_MIN);
}

/** How the pages of one davgate differ from those of others. */
export interface PageLook {
  /** The name of the drive; `undefined`: the word for a drive in the language of the browser. */
  readonly name: string | undefined;
  /** A data URL; `undefined`: davgate's own icon. */
  readonly logo: string | undefined;
  /** Rules that follow those of `LOOK`. */
  readonly accentStyle: string;
}

/** The look without settings. */
export const OWN_LOOK: PageLook = { name: undefined, logo: undefined, accentStyle: '' };

/** Returns the rules that put another accent in place of that of `LOOK`: a lighter one where the browser is dark. */
export function accentStyleOf(colour: string): string {
  const lighter = lightenedFor(colour, GROUNDS.dark);
  return `:root { --accent: ${colour}; }\n@media (prefers-color-scheme: dark) { :root { --accent: ${lighter}; } }\n`;
}

/** The icon of all pages, as a data URL: the browser makes no request for it. */
export const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 38 38'%3E%3Cpath fill='%234a8df0' d='M4 11a3 3 0 0 1 3-3h8l4 4h12a3 3 0 0 1 3 3v13a3 3 0 0 1-3 3H7a3 3 0 0 1-3-3z'/%3E%3C/svg%3E";
