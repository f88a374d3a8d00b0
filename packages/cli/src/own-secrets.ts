import type { Io } from './io.ts'

/** Values of the environment that its names call secret. */
export function ownSecrets({ env }: Io): readonly string[] {
  return Object.entries(env).flatMap(([name, value]) =>
    value !== undefined && /KEY|TOKEN|SECRET|PASS|CREDENTIAL/i.test(name) ? [value] : [],
  )
}
