/** The style sheet of the shared links' pages; one sheet, in light and dark. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5c6675; --paper: #fff; --ground: #f1f3f6; --line: #dde2e9; --accent: #1f5fd6; --on-accent: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ebf0; --soft: #a0a9b8; --paper: #1b2029; --ground: #11151b; --line: #303846; --accent: #7aa7ff; --on-accent: #0d1420; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 46rem; margin: 8vh auto; padding: 2rem; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; }
h1 { margin: .25rem 0; font-size: 1.5rem; line-height: 1.25; overflow-wrap: anywhere; }
a { color: var(--accent); }
.badge { display: inline-block; margin: 0; padding: .1rem .55rem; border: 1px solid var(--line); border-radius: 99px; color: var(--soft); font-size: .8rem; }
.facts { color: var(--soft); margin: .25rem 0 1rem; }
.problem { color: #c6372f; margin: .5rem 0; }
.preview { display: block; max-width: 100%; max-height: 65vh; margin: 1rem auto; border-radius: 8px; }
audio.preview { width: 100%; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem 1.25rem; align-items: center; margin: 1.5rem 0 0; }
.primary { padding: .55rem 1.2rem; border: 0; border-radius: 8px; background: var(--accent); color: var(--on-accent); font: inherit; font-weight: 600; text-decoration: none; cursor: pointer; }
a:focus-visible, button:focus-visible, input:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
ul { list-style: none; margin: 1rem 0 0; padding: 0; }
li { display: flex; justify-content: space-between; gap: 1rem; padding: .5rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
li.folder a { font-weight: 600; }
li span { color: var(--soft); white-space: nowrap; }
form { display: grid; gap: .5rem; max-width: 20rem; justify-items: start; }
input { width: 100%; padding: .5rem .7rem; border: 1px solid var(--line); border-radius: 8px; background: var(--paper); color: inherit; font: inherit; }
`;
