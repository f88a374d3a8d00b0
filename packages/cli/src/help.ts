import type { Command, CommandGroup } from './command.ts'

export function overview(commands: readonly (Command | CommandGroup)[]): string {
  const rows = commands.map(({ name, about }): Row => [`dsh ${name}`, about])
  return [
    'dsh is an agent that works on your files from the command line.',
    '',
    ...table([
      ...rows,
      ['dsh --version', 'Print the version'],
      ['dsh --help', 'Print this; dsh COMMAND --help tells more'],
    ]),
    '',
    'Try:  dsh run "what is in this folder?"',
    '',
  ].join('\n')
}

export function usage(command: Command): string {
  const rows = Object.entries(command.options).map(([name, { short, value, about }]): Row => {
    const long = value === undefined ? `--${name}` : `--${name} ${value}`
    return [short === undefined ? `    ${long}` : `-${short}, ${long}`, about]
  })
  return [
    `Usage: ${command.usage}`,
    '',
    `${command.about}.`,
    '',
    ...table([...rows, ['-h, --help', 'print this']]),
    ...(command.notes === undefined ? [] : ['', ...command.notes]),
    '',
  ].join('\n')
}

export function groupUsage({ name, about, actions, notes = [] }: CommandGroup): string {
  const rows = actions.map((action): Row => [
    [action.name.slice(name.length + 1), ...(action.words ?? [])].join(' '),
    action.about,
  ])
  return [
    `Usage: dsh ${name} ACTION`,
    '',
    `${about}.`,
    '',
    ...table(rows),
    '',
    ...notes,
    `dsh ${name} ACTION --help tells more.`,
    '',
  ].join('\n')
}

type Row = [left: string, right: string]

function table(rows: readonly Row[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length))
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`)
}
