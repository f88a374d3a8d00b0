import { homedir } from 'node:os'

/** Of the person that the program runs as. */
export function userHome(): string {
  return homedir()
}
