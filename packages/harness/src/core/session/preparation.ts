import type { Session } from './log.ts'
import type { SessionPreparation } from './persistence.ts'

/** A preparation whose `release` runs once, however often it is disposed. */
export function createPreparation(
  session: Session,
  release: () => void,
  notices?: readonly string[],
): SessionPreparation {
  let isHeld = true
  return {
    session,
    ...(notices === undefined ? {} : { notices }),
    [Symbol.dispose]: () => {
      if (!isHeld) return
      isHeld = false
      release()
    },
  }
}
