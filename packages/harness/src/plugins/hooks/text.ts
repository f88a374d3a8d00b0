import { cutText, inertMarkup } from '../../core/tools/index.ts'

/** How much of what a hook says is shown, in bytes. */
const shownBytes = 10_000
const shownInputBytes = 32_768
const shownPartBytes = 500

export const noReason = 'it gave no reason'

/** Of what hooks say, what is shown. */
export function bounded(text: string): string {
  return cutText(text, shownBytes, { mark: omitted => `\n[… ${omitted} bytes left out]` })
}

/** For the model, as a message of its own: nothing in it passes for instructions of the harness. */
export function contextText(id: string, contexts: string): string {
  return inertMarkup(`Context from the hook ${id}:\n${bounded(contexts)}`)
}

/** For the model, which wanted to end its turn. */
export function goOnText(reason: string): string {
  return inertMarkup(`A hook does not let the turn end yet:\n${bounded(reason)}`)
}

/** Why a call was refused. */
export function deniedText(reason: string): string {
  return `a hook denied the call: ${bounded(reason)}`
}

/** In place of the result of a call that ran. */
export function blockedText(reason: string): string {
  return `the call was made, and a hook objects to its result: ${bounded(reason)}`
}

/** Recorded arguments never change, so the model has to make the call anew. */
export function updatedText(id: string, name: string, input: object): string {
  const json = JSON.stringify(input)
  if (Buffer.byteLength(json) > shownInputBytes)
    return `the hook ${id} wants other arguments for the call than can be shown; it was not made`
  return `the call was not made: the hook ${id} wants other arguments; if that still serves, call ${name} with exactly these: ${json}`
}

export function failedText(id: string, problem: string): string {
  return `the hook ${id} failed: ${problem}`
}

/** Of what stands in a file, for messages. */
function brief(text: string): string {
  return cutText(text, shownPartBytes)
}

/** Of a file, or what stands in it. */
export function leftOutText(what: string, why: string): string {
  return `${brief(what)} is left out: ${brief(why)}`
}

/** Of a hook file, or what stands in it, that was to guard something: why that is denied, and the ways out. */
export function unusableText(what: string, why: string): string {
  return `${brief(what)} cannot be used: ${brief(why)}; until it is mended or removed, what it is for is denied (\`onFailure: allow\` of the plugin "hooks" in dsh.yml switches that off)`
}

export function goneText(label: string): string {
  return `${label} is gone, and its hooks with it`
}

export const scriptsChanged = 'scripts beside it changed since this folder was trusted (`dsh trust`)'

/** For the person. */
export function promptBlockedText(reason: string): string {
  return `a hook blocked the prompt: ${bounded(reason)}`
}

export function stoppedText(reason: string | undefined): string {
  return `a hook stopped the turn: ${reason === undefined ? noReason : bounded(reason)}`
}

export function roundsText(rounds: number): string {
  return `hooks kept the turn going ${rounds} times; it ends now (maxStopRounds of the plugin "hooks")`
}

export function secondUpdateText(id: string): string {
  return `the hook ${id} would change arguments that a hook has changed already; the call stays as it is`
}

export const permissionText = (name: string): string => `dsh needs your permission to use ${name}`

export function untrustedText(paths: readonly string[]): string {
  return `hooks of the project are not loaded, as this folder is not trusted: ${paths.join(', ')}; \`dsh trust\` shows them and asks`
}

export function changedText(paths: readonly string[]): string {
  return `hooks of the project are not loaded as they are now, for they changed since this folder was trusted: ${paths.join(', ')}; \`dsh trust\` shows them and asks`
}

export const unconfinedText =
  'no sandbox works here, and hooks run without one only in full-access mode or with `unconfined: true` of the plugin "hooks"'

/** Behind the failure of a hook that counts as a denial, for the person. */
export const failureHint = '; that counts as a denial, unless the plugin "hooks" has `onFailure: allow`'
