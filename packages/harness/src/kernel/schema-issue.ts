/** One problem that a schema found. Zod's carry more facts beside these. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

interface ZodIssue extends SchemaIssue {
  readonly code?: unknown
  readonly expected?: unknown
  readonly keys?: unknown
  readonly values?: unknown
  readonly origin?: unknown
  readonly minimum?: unknown
  readonly maximum?: unknown
  readonly inclusive?: unknown
}

/** All that Zod says of any problem where no language is loaded. */
const saysNothing = 'Invalid input'

/** What is wrong, the place first; one text for each problem. */
export function issueTexts(issue: SchemaIssue): readonly string[] {
  const { code, keys } = issue as ZodIssue
  const path = issue.path?.map(part => String(typeof part === 'object' ? part.key : part)) ?? []
  if (code === 'unrecognized_keys' && Array.isArray(keys))
    return keys.map(key => `${[...path, String(key)].join('.')}: is no setting`)
  const what = issue.message === saysNothing ? (factsOf(issue) ?? saysNothing) : issue.message
  return [`${path.length === 0 ? '(top level)' : path.join('.')}: ${what}`]
}

function factsOf(issue: ZodIssue): string | undefined {
  const { code, expected, values, origin, minimum, maximum, inclusive } = issue
  const size = origin === 'string' || origin === 'array' ? 'of a length of ' : ''
  switch (code) {
    case 'invalid_type':
      return `must be of type ${String(expected)}`
    case 'invalid_value':
      return Array.isArray(values)
        ? `must be ${values.map(value => JSON.stringify(value)).join(' or ')}`
        : undefined
    case 'too_small':
      return `must be ${size}${inclusive === true ? 'at least' : 'more than'} ${String(minimum)}`
    case 'too_big':
      return `must be ${size}${inclusive === true ? 'at most' : 'less than'} ${String(maximum)}`
    default:
      return undefined
  }
}
