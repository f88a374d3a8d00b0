/**
 * Names of frames that harnesses put around what they tell a model, and of the markup in which models speak. Each is
 * unlike anything in ordinary HTML, XML or TSX.
 */
const names = [
  'system[-_](?:reminder|message|prompt|instructions?|notice|warning)',
  'user[-_](?:instructions|prompt-submit-hook)',
  'developer[-_](?:message|instructions)',
  'environment_(?:context|details)',
  'permissions[-_ ]instructions',
  'command-(?:name|message|args|contents)',
  'local-command-(?:stdout|stderr|caveat)',
  'task-notification',
  'ide_(?:opened_file|selection|diagnostics)',
  'turn_aborted',
  '(?:start|end)_of_turn',
  'tool_(?:calls?|results?|responses?|use|outputs?)',
  'function_(?:calls?|results?|responses?)',
].join('|')

/** What may stand between the bracket and the name without making it another tag to whoever reads it. */
const gap = String.raw`[/\u200b-\u200f\u2060\ufeff]{0,4}`
const wideGap = String.raw`[\s/\u200b-\u200f\u2060\ufeff]{0,8}`

const openings = [
  String.raw`${gap}(?:(?:${names})(?!\w)|function=|antml:|dsh[-:])`,
  // Nobody compares a number with a name that has a hyphen.
  String.raw`${wideGap}(?:system-(?:reminder|message|prompt|instructions?|notice|warning)|user-(?:instructions|prompt))`,
  // Tokens of chat templates: <|im_start|>, <|tool…, <<SYS>>, and those with the bars of DeepSeek.
  String.raw`/?\|/?[a-z][\w.-]{0,63}\|>`,
  String.raw`/?\|(?:im_|tool|start_header|end_header)`,
  `/?｜`,
  String.raw`</?sys>>`,
].join('|')

const tags = new RegExp(`<(?=${openings})`, 'gi')
/** Names that code has too, in another spelling: `<System />` and `<user name="…">` stay. */
const bareTags = /<(?=\/?(?:system|assistant|think|thinking)>)/g
const squareTags = /(?<!\w)\[(?=\/?INST\])/g
/** Turns of a transcript, as old models were told of them. */
const roles = /(?<=(?:^|\n[ \t]*\r?\n)(?:Human|Assistant)):(?= |\r?\n|$)/g

/**
 * `text` of others without anything that could pass for an instruction of the harness or for structure of the
 * conversation: `<system-reminder>` becomes `‹system-reminder>`.
 *
 * One sign is put in place of one, in linear time, so that lengths stay; ordinary markup stays as it is; a second time
 * changes nothing.
 */
export function inertMarkup(text: string): string {
  const angled = text.includes('<') ? text.replace(tags, '‹').replace(bareTags, '‹') : text
  const squared = angled.includes('INST]') ? angled.replace(squareTags, '［') : angled
  const speaks = squared.includes('Human:') || squared.includes('Assistant:')
  return speaks ? squared.replace(roles, '：') : squared
}
