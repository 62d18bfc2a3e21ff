import { LOOK } from '../../../util/look.ts';

/** The style sheet of the shared links' pages and frames, in light and dark. */
export const STYLE = `${LOOK}
body { min-height: 100vh; display: flex; flex-direction: column; }
label:focus-within { outline: 3px solid var(--accent); outline-offset: 2px; }

header { display: flex; flex-wrap: wrap; align-items: center; gap: .75rem 1.25rem; padding: .8rem 1.5rem; background: var(--paper); border-bottom: 1px solid var(--line); }
.title { flex: 1 1 14rem; min-width: 0; display: flex; align-items: center; gap: .85rem; }
.title > div { min-width: 0; }
.title .icon { flex: none; width: 2.4rem; height: 2.4rem; }
h1 { margin: 0; font-size: 1.15rem; line-height: 1.3; overflow-wrap: anywhere; }
.facts { margin: 0; color: var(--soft); font-size: .875rem; }
.crumbs { margin: 0; font-size: .875rem; overflow-wrap: anywhere; color: var(--soft); }

main { flex: 1; width: 100%; max-width: 72rem; margin: 0 auto; padding: 1.5rem; }
main.wide { max-width: none; }
.note { margin: 1rem 0 0; color: var(--soft); font-size: .9375rem; }
.card .actions { margin-top: 1.25rem; }

.picture { display: flex; flex-direction: column; align-items: center; gap: .75rem; }
.picture img { display: block; margin: auto; background: repeating-conic-gradient(color-mix(in srgb, var(--ink) 7%, var(--paper)) 0 25%, var(--paper) 0 50%) 0 0/20px 20px; }
.canvas { width: 100%; overflow: auto; cursor: zoom-in; }
.canvas:has(+ .zoom :checked) { cursor: zoom-out; }
.best img { max-width: 100%; max-height: 76vh; }
.fit img { width: 100%; }
.picture:has(:checked) img { width: auto; max-width: none; max-height: none; }
.zoom { display: inline-flex; align-items: center; gap: .45rem; color: var(--soft); font-size: .9375rem; cursor: pointer; }
video { display: block; width: 100%; max-height: 76vh; margin: 0 auto; background: #000; border-radius: 8px; }
.sound { max-width: 34rem; margin: 8vh auto; padding: 2rem; background: var(--paper); border: 1px solid var(--line); border-radius: 14px; text-align: center; }
.sound .icon { width: 4.5rem; height: 4.5rem; margin: 0 auto 1.25rem; }
audio { width: 100%; }
.pdf { display: block; width: 100%; height: calc(100vh - 8.5rem); min-height: 24rem; border: 1px solid var(--line); border-radius: 8px; background: var(--paper); }

.sheet { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; overflow: hidden; }
.code { margin: 0; padding: .9rem 0; overflow-x: auto; font: .8125rem/1.6 ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; tab-size: 4; counter-reset: line; }
.line { display: block; min-height: 1.6em; padding: 0 1.25rem 0 4.25rem; min-width: max-content; counter-increment: line; }
.line::before { content: counter(line); position: sticky; left: 0; float: left; width: 3.5rem; margin-left: -4.25rem; padding-right: .75rem; text-align: right; color: var(--soft); background: var(--paper); user-select: none; }
.plain .code { white-space: pre-wrap; overflow-wrap: anywhere; }
.plain .line { min-width: 0; }
.hljs-keyword, .hljs-literal, .hljs-selector-tag, .hljs-doctag, .hljs-meta .hljs-keyword { color: var(--keyword); }
.hljs-string, .hljs-regexp, .hljs-addition, .hljs-meta .hljs-string, .hljs-code { color: var(--string); }
.hljs-number, .hljs-symbol, .hljs-bullet, .hljs-link, .hljs-template-variable, .hljs-variable { color: var(--number); }
.hljs-title, .hljs-name, .hljs-section, .hljs-attr, .hljs-attribute, .hljs-built_in, .hljs-type, .hljs-selector-id, .hljs-selector-class { color: var(--accent); }
.hljs-comment, .hljs-quote, .hljs-meta { color: var(--soft); }
.hljs-deletion { color: var(--bad); }
.hljs-emphasis { font-style: italic; }
.hljs-strong, .hljs-section { font-weight: 700; }

.markdown { padding: 1.5rem clamp(1.25rem, 5vw, 3.5rem) 2rem; overflow-wrap: anywhere; }
.markdown > :first-child { margin-top: 0; }
.markdown :is(h1, h2) { margin: 1.8em 0 .6em; padding-bottom: .3em; border-bottom: 1px solid var(--line); }
.markdown h1 { font-size: 1.75rem; }
.markdown h2 { font-size: 1.35rem; }
.markdown :is(h3, h4, h5, h6) { margin: 1.5em 0 .5em; font-size: 1.1rem; }
.markdown :is(code, pre) { font: .875em/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
.markdown code { padding: .1em .35em; background: var(--ground); border-radius: 5px; }
.markdown pre { padding: 1rem; background: var(--ground); border-radius: 8px; overflow-x: auto; overflow-wrap: normal; }
.markdown pre code { padding: 0; font-size: 1em; }
.markdown blockquote { margin: 1em 0; padding: .1em 1.1em; border-left: 4px solid var(--line); color: var(--soft); }
.markdown table { display: block; max-width: 100%; overflow-x: auto; border-collapse: collapse; }
.markdown :is(th, td) { padding: .4rem .8rem; overflow-wrap: break-word; border: 1px solid var(--line); }
.markdown hr { border: 0; border-top: 1px solid var(--line); }
.markdown img { max-width: 100%; }

.items { list-style: none; margin: 0; padding: 0; }
.items li { position: relative; display: grid; align-items: center; }
.items li:hover { background: color-mix(in srgb, var(--accent) 7%, transparent); }
.items a { color: var(--ink); text-decoration: none; overflow-wrap: anywhere; }
.items a::after { content: ''; position: absolute; inset: 0; }
.items a:hover { color: var(--accent); }
.items :is(.size, time) { color: var(--soft); font-size: .875rem; white-space: nowrap; }
.list li { grid-template-columns: 1.75rem 1fr 6rem 7rem; gap: .9rem; padding: .6rem 1.25rem; }
.list li + li { border-top: 1px solid var(--line); }
.look { position: relative; display: grid; place-items: center; }
.look img { position: absolute; inset: 0; margin: auto; max-width: 100%; max-height: 100%; background: var(--paper); border-radius: 4px; }
.list .look, .list .icon { width: 1.75rem; height: 1.75rem; }
.list .look img { width: 100%; height: 100%; object-fit: cover; background: none; }
.list :is(.size, time) { text-align: right; }
.grid { display: grid; grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); gap: 1rem; padding: 1.25rem; }
.grid li { grid-template-rows: 7.5rem auto auto; align-content: start; justify-items: center; gap: .3rem; padding: .75rem; border: 1px solid var(--line); border-radius: 10px; text-align: center; font-size: .9375rem; }
.grid .icon { width: 3.5rem; height: 3.5rem; }
.grid .look { width: 100%; height: 7.5rem; }
.grid time { display: none; }
.views { display: inline-flex; border: 1px solid var(--line); border-radius: 8px; overflow: hidden; }
.views a { padding: .5rem .7rem; color: var(--soft); background: var(--paper); }
.views a svg { width: 1.25rem; height: 1.25rem; }
.views [aria-current] { background: color-mix(in srgb, var(--accent) 14%, var(--paper)); color: var(--accent); }
.empty { padding: 3.5rem 1.5rem; text-align: center; color: var(--soft); }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }

@media (max-width: 40rem) {
  header { padding: .75rem 1rem; }
  main { padding: 1rem .75rem; }
  .list li { grid-template-columns: 1.75rem 1fr auto; padding: .65rem .9rem; }
  .list time { display: none; }
  .line { padding-left: 3.5rem; }
  .line::before { width: 3rem; margin-left: -3.5rem; padding-right: .75rem; }
}

body.frame { min-height: 0; background: var(--paper); }
.frame header { padding: .7rem 1rem; }
.frame header.small { padding: .35rem .75rem; gap: .4rem .75rem; }
.frame header.small .icon { width: 1.4rem; height: 1.4rem; }
.frame header.small h1 { font-size: .9375rem; }
.frame header.small .facts { display: none; }
.frame header.small .button { padding: .15rem .6rem; font-size: .8125rem; }
.frame header.small .views a { padding: .2rem .45rem; }
.frame main { padding: 1rem; }
.frame main.flush { padding: 0; }
.frame .sheet { border: 0; border-radius: 0; }
.frame .card, .frame .sound { margin: 1.5rem auto; border: 0; }
.frame .best img, .frame video { max-height: 34rem; }
.frame .code { max-height: 34rem; overflow: auto; }
.frame .markdown { padding: 1.25rem; }
`;
