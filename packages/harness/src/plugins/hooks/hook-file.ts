import { isFields, isText, messageOf, nearest } from '../../kernel/index.ts'
import type { HookDialect } from './dialect.ts'
import { guardedPoints } from './events.ts'
import type { HookPoint } from './events.ts'
import { toMatcher } from './matcher.ts'
import type { Matcher } from './matcher.ts'
import { leftOutText } from './text.ts'

type Fields = Readonly<Record<string, unknown>>

/** A command of a hook file. */
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
  /** Why it can never run, although it was to guard something: it counts as one that always fails. */
  readonly unusable?: string
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

/** Hooks that run behind what they are told of guard nothing. */
const backgroundFields: ReadonlySet<string | undefined> = new Set(['async', 'asyncRewake'])

/** What `text` declares. Whatever is wrong costs only itself; where it was to guard something, that stays guarded. */
export function parseHookFile(text: string, place: HookFilePlace): HookFile {
  return new HookFileReader(place).read(text)
}

/** Of a file that cannot be read: it may have guarded every call. */
export function unusableFile(why: string, { label, dialect }: HookFilePlace): HookHandler {
  const point = 'PreToolUse'
  return { ...everything, id: label, point, dialect, unusable: why }
}

/** For every call. */
const everything = {
  matcher: undefined,
  matches: toMatcher(undefined, 'names'),
  command: '',
  timeoutMs: undefined,
  env: {},
} as const

/** Where hooks are declared, and for what. */
interface Spot {
  readonly point: HookPoint
  /** Its place in the file. */
  readonly where: string
  readonly matcher?: string | undefined
  readonly matches?: Matcher
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

  #parse(text: string): Fields | undefined {
    try {
      const root: unknown = JSON.parse(text.replace(/^\uFEFF/, ''))
      if (isFields(root)) return root
      this.#giveUp('it is no JSON object')
    } catch (error) {
      this.#giveUp(`it is no JSON: ${messageOf(error)}`)
    }
    return undefined
  }

  #readPoints(root: Fields): void {
    const { hooks } = root
    if (hooks === undefined) {
      const misplaced = [...guardedPoints].find(name => root[name] !== undefined)
      if (misplaced !== undefined) this.#giveUp(`its "${misplaced}" is not in "hooks"`)
      // Settings need not have any.
      else if (!/settings[^/]*$/.test(this.#place.label)) this.#leaveOut('', 'it has no "hooks"')
    } else if (isFields(hooks)) {
      for (const [name, groups] of Object.entries(hooks)) this.#readPoint(name, groups)
    } else this.#giveUp('its "hooks" are no object')
  }

  #readPoint(name: string, groups: unknown): void {
    const { points } = this.#place.dialect
    const point = [...points].find(each => each === name)
    if (point === undefined) {
      const hint = nearest(name, points)
      const why = `there is no such event here${hint}`
      const meant = [...guardedPoints].find(each => hint.includes(`"${each}"`))
      if (meant === undefined) this.#leaveOut(name, why)
      else this.#refuse({ point: meant, where: name }, why)
    } else if (!Array.isArray(groups)) this.#refuse({ point, where: point }, 'it is no list')
    else groups.forEach((group: unknown, index) => this.#readGroup(group, point, `${point}[${index}]`))
  }

  #readGroup(group: unknown, point: HookPoint, where: string): void {
    const spot = { point, where, ...(isFields(group) && this.#matcherOf(group['matcher'], point, where)) }
    if (!isFields(group) || !Array.isArray(group['hooks'])) {
      this.#refuse(spot, 'it has no list "hooks"')
      return
    }
    const { matches } = spot
    if (matches === undefined) return
    for (const [index, hook] of (group['hooks'] as unknown[]).entries())
      this.#readHook(hook, { ...spot, matches, where: `${where}.hooks[${index}]` })
  }

  #matcherOf(matcher: unknown, point: HookPoint, where: string): Pick<Spot, 'matcher' | 'matches'> {
    if (matcher !== undefined && typeof matcher !== 'string') {
      this.#refuse({ point, where }, `its matcher is ${JSON.stringify(matcher)}, no text`)
      return {}
    }
    try {
      const matches = toMatcher(matcher, this.#place.dialect.matcherMode)
      return { matcher: isText(matcher) ? matcher : undefined, matches }
    } catch (error) {
      const why = `its matcher ${JSON.stringify(matcher)} is no pattern: ${messageOf(error)}`
      this.#refuse({ point, where }, why)
      return {}
    }
  }

  #readHook(hook: unknown, spot: Spot & { readonly matches: Matcher }): void {
    if (!isFields(hook)) {
      this.#refuse(spot, 'it is no object')
      return
    }
    const { type, command } = hook
    const foreign = foreignFields.find(name => hook[name] !== undefined && hook[name] !== false)
    if (type !== 'command') this.#refuse(spot, `hooks of type ${JSON.stringify(type)} do not run here`)
    else if (!isText(command) || command.trim() === '') this.#refuse(spot, 'it has no command')
    else if (backgroundFields.has(foreign)) this.#leaveOut(spot.where, `its "${foreign}" is not supported`)
    else if (foreign !== undefined) this.#refuse(spot, `its "${foreign}" is not supported`)
    else {
      const timeoutMs = this.#timeoutOf(hook, spot)
      if (timeoutMs !== 'bad') this.#handlers.push({ ...this.#handlerAt(spot), command, timeoutMs })
    }
  }

  #timeoutOf(hook: Fields, spot: Spot): number | undefined | 'bad' {
    const name = this.#place.dialect.timeoutFields.find(each => hook[each] !== undefined)
    if (name === undefined) return undefined
    const seconds = hook[name]
    if (typeof seconds === 'number' && seconds > 0 && seconds <= longestSeconds)
      return Math.ceil(seconds * 1000)
    const allowed = `a number of seconds above 0 and at most ${longestSeconds}`
    this.#refuse(spot, `its ${name} is ${JSON.stringify(seconds)}, not ${allowed}`)
    return 'bad'
  }

  #handlerAt({ point, where, matcher, matches = everything.matches }: Spot): HookHandler {
    const { label, dialect, env = {} } = this.#place
    return { ...everything, id: `${label} ${where}`, point, dialect, matcher, matches, env }
  }

  /** The whole file. */
  #giveUp(why: string): void {
    this.#handlers.push(unusableFile(why, this.#place))
  }

  /** Left out, unless it was to guard something. */
  #refuse(spot: Spot, why: string): void {
    if (guardedPoints.has(spot.point)) this.#handlers.push({ ...this.#handlerAt(spot), unusable: why })
    else this.#leaveOut(spot.where, why)
  }

  #leaveOut(where: string, why: string): void {
    const what = where === '' ? this.#place.label : `${this.#place.label} ${where}`
    this.#problems.push(leftOutText(what, why))
  }
}
