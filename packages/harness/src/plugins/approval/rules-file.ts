import { readFile, stat } from 'node:fs/promises'
import { platform } from 'node:os'
import {
  HarnessError,
  isCount,
  isFields,
  isText,
  messageOf,
  replaceFile,
  underFileLock,
} from '../../kernel/index.ts'
import type { Fields } from '../../kernel/index.ts'
import type { PermissionRule } from './events.ts'
import { isSameRule, readRule } from './rule.ts'
import type { StoredRule } from './rules-in-force.ts'

/** A rule of the file, with the name by which it is taken away. */
export interface FiledRule extends StoredRule {
  readonly id: string
}

export interface RulesFileState {
  /** Grows with every change of this program; no id comes twice. */
  readonly revision: number
  readonly rules: readonly FiledRule[]
  /** What is wrong with the file or with single rules, each with what mends it. Nothing of it allows anything. */
  readonly problems: readonly string[]
}

/** Gives the one file; it is loaded when it is first needed. */
export type OpenRules = () => Promise<RulesFile>

interface Content extends RulesFileState {
  /** As they stand, with those that mean nothing: what is not understood is kept. */
  readonly entries: readonly unknown[]
  /** Whether the file may be written over. */
  readonly isSound: boolean
}

const formatVersion = 1
const isWindows = platform() === 'win32'
/** More than anybody writes by hand; each call of a tool would look through it. */
const largestFile = 4n * 1024n * 1024n
const none: Content = { revision: 0, rules: [], problems: [], entries: [], isSound: true }

/** The rules that a person keeps from one session to the next. Read again whenever the file is another. */
export class RulesFile {
  readonly path: string
  #seen: { readonly mark: string; readonly content: Content } | undefined

  constructor(path: string) {
    this.path = path
  }

  async read(): Promise<RulesFileState> {
    return await this.#load()
  }

  /** Gives the rules as they stand in the file: one that stands there already is not written twice. */
  async add(rules: readonly PermissionRule[]): Promise<readonly FiledRule[]> {
    return await this.#change(content => {
      const filed = rules.map((rule, index) => {
        const there = content.rules.find(other => isSameRule(other.rule, rule))
        return there ?? { id: `r${content.revision + index + 1}`, rule }
      })
      const fresh = filed.filter(rule => !content.rules.includes(rule))
      const entries = [...content.entries, ...fresh.map(({ id, rule }) => ({ id, ...rule }))]
      return { result: filed, entries, revision: content.revision + rules.length }
    })
  }

  /** Gives what was taken away. Throws UNKNOWN_RULE, with nothing done, where one of `ids` is not there. */
  async remove(ids: readonly string[]): Promise<readonly FiledRule[]> {
    return await this.#change(content => {
      const unknown = ids.find(id => !content.rules.some(rule => rule.id === id))
      if (unknown !== undefined)
        throw new HarnessError('UNKNOWN_RULE', `there is no rule "${unknown}" in "${this.path}"`)
      const isTaken = (entry: unknown): boolean => isFields(entry) && ids.includes(String(entry['id']))
      const entries = content.entries.filter(entry => !isTaken(entry))
      const result = content.rules.filter(({ id }) => ids.includes(id))
      return { result, entries, revision: content.revision + 1 }
    })
  }

  async #change<T>(
    decide: (content: Content) => { result: T; entries: readonly unknown[]; revision: number },
  ): Promise<T> {
    return await underFileLock(this.path, async () => {
      const content = await this.#load()
      if (!content.isSound) throw new HarnessError('PERMISSIONS_BROKEN', content.problems.join('; '))
      const { result, entries, revision } = decide(content)
      if (entries.length !== content.entries.length) await this.#write(revision, entries)
      return result
    })
  }

  async #write(revision: number, rules: readonly unknown[]): Promise<void> {
    const lines = rules.map(rule => `\n    ${JSON.stringify(rule)}`)
    const list = lines.length === 0 ? '[]' : `[${lines.join(',')}\n  ]`
    const text = `{\n  "version": ${formatVersion},\n  "revision": ${revision},\n  "rules": ${list}\n}\n`
    await replaceFile(this.path, text, { mode: 0o600 })
  }

  async #load(): Promise<Content> {
    try {
      const stats = await stat(this.path, { bigint: true })
      // Whoever opens a pipe waits for its other end.
      if (!stats.isFile()) return this.#broken('it is no file')
      const { ino, size, mode, mtimeNs, ctimeNs } = stats
      if (!isWindows && (mode & 0o002n) !== 0n) return this.#broken('everybody may write it')
      if (size > largestFile) return this.#broken(`it has ${size} bytes, more than ${largestFile}`)
      const mark = `${ino} ${size} ${mtimeNs} ${ctimeNs}`
      if (this.#seen?.mark === mark) return this.#seen.content
      const content = this.#parse(await readFile(this.path, 'utf8'))
      this.#seen = { mark, content }
      return content
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return none
      return this.#broken(`it cannot be read: ${messageOf(error)}`)
    }
  }

  #parse(text: string): Content {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch (error) {
      return this.#broken(`it is no JSON: ${messageOf(error)}`)
    }
    if (!isFields(value)) return this.#broken('it is no object')
    const { version, revision, rules } = value
    if (version !== formatVersion) return this.#broken(`its version is not ${formatVersion}`)
    if (!isCount(revision)) return this.#broken('revision: is no number from 0')
    if (!Array.isArray(rules)) return this.#broken('rules: is no list')
    return { revision, entries: rules, isSound: true, ...this.#readEntries(rules) }
  }

  #readEntries(entries: readonly unknown[]): Pick<Content, 'rules' | 'problems'> {
    const rules: FiledRule[] = []
    const problems: string[] = []
    for (const [index, entry] of entries.entries()) {
      const read = readEntry(entry, rules)
      if ('rule' in read) rules.push(read)
      else
        problems.push(
          `rule ${index + 1} of "${this.path}" counts for nothing: ${read.problem}; mend or remove it`,
        )
    }
    return { rules, problems }
  }

  #broken(why: string): Content {
    const problem = `"${this.path}" counts for nothing: ${why}; mend or remove it`
    return { ...none, problems: [problem], isSound: false }
  }
}

function readEntry(entry: unknown, before: readonly FiledRule[]): FiledRule | { readonly problem: string } {
  if (!isFields(entry)) return { problem: 'it is no object' }
  const { id, ...fields }: Fields = entry
  if (!isText(id)) return { problem: 'id: is no name' }
  if (before.some(other => other.id === id)) return { problem: `id: "${id}" comes twice` }
  const rule = readRule(fields)
  return 'problem' in rule ? rule : { id, rule }
}
