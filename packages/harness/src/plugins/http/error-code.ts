/** The system's word for what broke a connection, wherever in the chain of causes it stands. */
export function errorCode(error: unknown): string {
  for (let at = error, depth = 0; depth < 8 && typeof at === 'object' && at !== null; depth++) {
    const { code, cause, errors } = at as { code?: unknown; cause?: unknown; errors?: unknown }
    if (typeof code === 'string' && code !== '') return code
    at = cause ?? (Array.isArray(errors) ? errors[0] : undefined)
  }
  return 'UNKNOWN'
}
