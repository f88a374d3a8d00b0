export const description =
  'Run a command in a bash that stays: its folder, variables, functions and jobs are there in the next call.'

export const sectionText =
  'All bash calls go to one shell on a terminal. Commands must not ask for input. End servers with &. After a time-out the shell is a new one, which the result says.'

const lost = 'its folder, variables and jobs are gone'

export const timedOutText = (ms: number): string =>
  `[timed out after ${ms} ms; the shell was ended, the next call gets a new one: ${lost}]`
export const exitedText = (exitCode: number | null, signal: string | null): string =>
  `[shell exited: ${signal === null ? `code ${exitCode}` : `signal ${signal}`}; the next call gets a new one: ${lost}]`
export const newShellText = (reason: string): string => `[this is a new shell, ${reason}: ${lost}]`
export const stuckText = 'what ran before could not be interrupted'
export const waitingText = (id: string): string =>
  `[waiting for input; terminal_send types into ${id}, the next bash call interrupts it]`
export const otherToolText =
  'the plugin bash offers the tool bash already; put `tool: false` into its row of dsh.yml'
