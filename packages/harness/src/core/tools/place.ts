import { cutText } from './text.ts'

/** A way into a value, grown at its end without copying. */
export interface Place {
  readonly parent: Place | undefined
  readonly key: string | number
}

const shownKeys = 12
const longestShownKey = 60
const plainKey = /^[A-Za-z_$][\w$]*$/

/** `todos[0].status` as seen from `root`; the middle of a very long way is left out. */
export function describePlace(root: string, place: Place | undefined): string {
  const keys: (string | number)[] = []
  for (let at = place; at !== undefined; at = at.parent) keys.push(at.key)
  keys.reverse()
  const parts = keys.map((key, index) => describeKey(key, index === 0))
  if (parts.length === 0) return root
  if (parts.length > shownKeys) parts.splice(shownKeys / 2, parts.length - shownKeys, '…')
  return parts.join('')
}

function describeKey(key: string | number, isFirst: boolean): string {
  if (typeof key === 'number') return `[${key}]`
  if (key.length > longestShownKey || !plainKey.test(key))
    return `[${cutText(JSON.stringify(key), longestShownKey)}]`
  return isFirst ? key : `.${key}`
}
