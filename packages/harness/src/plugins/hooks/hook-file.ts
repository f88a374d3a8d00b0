import { isFields, isText, messageOf, nearest } from '../../kernel/index.ts'
import type { HookDialect } from './dialect.ts'
import type { HookPoint } from './events.ts'
import { toMatcher } from './matcher.ts'
import type { Matcher } from './matcher.ts'

/** A command of a hook file that can run. */
export interface HookHandler {
  /** Its file, and its place there: `.claude/settings.json PreToolUse[0].hooks[1]`. */
  readonly id: string
  readonly point: HookPoint
  readonly dialect: HookDialect
  /** As it stands in the file. */
  readonly matcher: string | undefined
  readonly matches: Matcher
  /** For a shell. */
  readonly command: string
  readonly timeoutMs: number | undefined
  /** What the command finds besides, fixed by who named the file. */
  readonly env: Readonly<Record<string, string>>
}

export interface HookFile {
  readonly handlers: readonly HookHandler[]
  /** What is left out, one sentence each, and why. */
  readonly problems: readonly string[]
}

export interface HookFilePlace {
  /** What messages call the file. */
  readonly label: string
  readonly dialect: HookDialect
  readonly env?: Readonly<Record<string, string>>
}

/** A day. */
const longestSeconds = 86_400
/** Of a handler, what changes whether or how it runs, and what is not done here. */
const foreignFields = ['if', 'args', 'shell', 'async', 'asyncRewake']

/** What `text` declares. Whatever is wrong costs only itself. */
export function parseHookFile(text: string, place: HookFilePlace): HookFile {
  return new HookFileReader(place).read(text)
}

class HookFileReader {
  readonly #place: HookFilePlace
  readonly #handlers: HookHandler[] = []
  readonly #problems: string[] = []

  constructor(place: HookFilePlace) {
    this.#place = place
  }

  read(text: string): HookFile {
    const root = this.#parse(text)
    if (root !== undefined && root['disableAllHooks'] !== true) this.#readPoints(root)
    return { handlers: this.#handlers, problems: this.#problems }
  }

  #parse(text: string): Readonly<Record<string, unknown>> | undefined {
    try {
      const root: unknown = JSON.parse(text)
      if (isFields(root)) return root
      this.#leaveOut('', 'it is no JSON object')
    } catch (error) {
      this.#leaveOut('', `it is no JSON: ${messageOf(error)}`)
    }
    return undefined
  }

  #readPoints(root: Readonly<Record<string, unknown>>): void {
    const { hooks } = root
    // Settings need not have any.
    if (hooks === undefined && /settings[^/]*$/.test(this.#place.label)) return
    if (!isFields(hooks)) {
      this.#leaveOut('', 'its "hooks" are no object')
      return
    }
    const { points } = this.#place.dialect
    for (const [name, groups] of Object.entries(hooks)) {
      const point = [...points].find(each => each === name)
      if (point === undefined)
        this.#leaveOut(name, `there is no such event here${nearest(name, [...points])}`)
      else if (!Array.isArray(groups)) this.#leaveOut(name, 'it is no list')
      else groups.forEach((group: unknown, index) => this.#readGroup(group, point, `${point}[${index}]`))
    }
  }

  #readGroup(group: unknown, point: HookPoint, where: string): void {
    if (!isFields(group) || !Array.isArray(group['hooks'])) {
      this.#leaveOut(where, 'it has no list "hooks"')
      return
    }
    const { matcher, hooks } = group
    const matches = this.#matcherOf(matcher, where)
    if (matches === undefined) return
    for (const [index, hook] of (hooks as unknown[]).entries()) {
      const at = `${where}.hooks[${index}]`
      const read = this.#readHook(hook, at)
      if (read === undefined) continue
      this.#handlers.push({
        id: `${this.#place.label} ${at}`,
        point,
        dialect: this.#place.dialect,
        matcher: isText(matcher) ? matcher : undefined,
        matches,
        env: this.#place.env ?? {},
        ...read,
      })
    }
  }

  #matcherOf(matcher: unknown, where: string): Matcher | undefined {
    if (matcher !== undefined && typeof matcher !== 'string') {
      this.#leaveOut(where, `its matcher is ${JSON.stringify(matcher)}, no text`)
      return undefined
    }
    try {
      return toMatcher(matcher, this.#place.dialect.matcherMode)
    } catch (error) {
      this.#leaveOut(where, `its matcher ${JSON.stringify(matcher)} is no pattern: ${messageOf(error)}`)
      return undefined
    }
  }

  #readHook(hook: unknown, where: string): Pick<HookHandler, 'command' | 'timeoutMs'> | undefined {
    if (!isFields(hook)) {
      this.#leaveOut(where, 'it is no object')
      return undefined
    }
    const { type, command } = hook
    const foreign = foreignFields.find(name => hook[name] !== undefined && hook[name] !== false)
    if (type !== 'command') this.#leaveOut(where, `hooks of type ${JSON.stringify(type)} do not run here`)
    else if (!isText(command) || command.trim() === '') this.#leaveOut(where, 'it has no command')
    else if (foreign !== undefined) this.#leaveOut(where, `its "${foreign}" is not supported`)
    else {
      const timeoutMs = this.#timeoutOf(hook, where)
      return timeoutMs === 'bad' ? undefined : { command, timeoutMs }
    }
    return undefined
  }

  #timeoutOf(hook: Readonly<Record<string, unknown>>, where: string): number | undefined | 'bad' {
    const name = this.#place.dialect.timeoutFields.find(each => hook[each] !== undefined)
    if (name === undefined) return undefined
    const seconds = hook[name]
    if (typeof seconds === 'number' && seconds > 0 && seconds <= longestSeconds)
      return Math.ceil(seconds * 1000)
    const allowed = `a number of seconds above 0 and at most ${longestSeconds}`
    this.#leaveOut(where, `its ${name} is ${JSON.stringify(seconds)}, not ${allowed}`)
    return 'bad'
  }

  #leaveOut(where: string, why: string): void {
    const what = where === '' ? this.#place.label : `${this.#place.label} ${where}`
    this.#problems.push(`${what} is left out: ${why}`)
  }
}
