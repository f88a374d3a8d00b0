/** Of an export in HTML: legible in light and dark, on paper and on a phone. */
export const styles = `
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #f2f4f7; --line: #d5dae1; --mark: #0a58ca; --bad: #b3261e }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --paper: #15181c; --soft: #1f242a; --line: #353c45; --mark: #7fb0ff; --bad: #ff8a80 } }
body { margin: 0 auto; max-width: 52rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; overflow-wrap: anywhere }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem }
h1 { font-size: 1.35rem; margin: 0 }
header p, small, .note { color: color-mix(in srgb, var(--ink) 65%, transparent) }
.prompt { white-space: pre-wrap; background: var(--soft); border-left: 3px solid var(--mark); border-radius: 4px; padding: .7rem 1rem; margin: 1.6rem 0 1rem }
.tool { border: 1px solid var(--line); border-radius: 4px; margin: .4rem 0; padding: .3rem .7rem }
.tool.failed summary b, .note.failed { color: var(--bad) }
summary { cursor: pointer }
pre { overflow-x: auto; background: var(--soft); border-radius: 4px; padding: .7rem; font: 13px/1.45 ui-monospace, monospace; white-space: pre-wrap }
code { font: .9em ui-monospace, monospace }
table { border-collapse: collapse } td, th { border: 1px solid var(--line); padding: .2rem .6rem }
a { color: var(--mark) }
`
