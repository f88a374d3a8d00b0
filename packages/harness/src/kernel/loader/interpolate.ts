import { LoaderError } from './errors.ts'
import { isRecord } from './row.ts'

const reference = /\$?\$\{env:([^}]*)\}/g

/**
 * Replaces `${env:NAME}` in every text of a config; `$${env:NAME}` stays as `${env:NAME}`. What a variable holds is
 * never looked at again. Throws INVALID_ROW, with the path, for a variable that is not set.
 */
export function interpolate(
  config: unknown,
  env: Readonly<Record<string, string | undefined>>,
  path = 'config',
): unknown {
  if (typeof config === 'string') return interpolateText(config, env, path)
  if (Array.isArray(config)) return config.map((item, index) => interpolate(item, env, `${path}[${index}]`))
  if (!isRecord(config)) return config
  return Object.fromEntries(
    Object.entries(config).map(([key, value]) => [key, interpolate(value, env, `${path}.${key}`)]),
  )
}

function interpolateText(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  path: string,
): string {
  return text.replace(reference, (whole, name: string) => {
    if (whole.startsWith('$$')) return whole.slice(1)
    const value = Object.hasOwn(env, name) ? env[name] : undefined
    if (value === undefined)
      throw new LoaderError(
        'INVALID_ROW',
        `${path} needs the environment variable "${name}", which is not set`,
      )
    return value
  })
}
