/** The style sheet of the pages on which an app is allowed into an account; one sheet, in light and dark. */
export const AUTHORIZE_STYLE = `
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
