const utf8 = /utf-?8/i

/** What makes a child read and write UTF-8, where `env` does not say so by itself. */
export function utf8Locale(
  env: Readonly<Record<string, string | undefined>>,
  platform: string,
): Readonly<Record<string, string>> {
  const chosen = env['LC_ALL'] || env['LC_CTYPE'] || env['LANG'] || ''
  if (utf8.test(chosen)) return {}
  return { LC_ALL: platform === 'darwin' ? 'en_US.UTF-8' : 'C.UTF-8' }
}
