import type { SandboxMode, SandboxReadiness } from '../sandbox/index.ts'

interface Situation {
  readonly mode: SandboxMode
  /** Of what runs in the sandbox. */
  readonly hasNetwork: boolean
  /** Undefined as long as nobody looked. */
  readonly sandbox: SandboxReadiness | undefined
  readonly yes: boolean
  /** Whether somebody can be asked who may say yes. */
  readonly canAsk: boolean
}

const filesTexts: Readonly<Record<Exclude<SandboxMode, 'full-access'>, string>> = {
  'read-only': 'No file is written',
  'workspace-write': 'Files are written below the working folder',
}
const confinedTexts: typeof filesTexts = {
  'read-only': 'commands run in a sandbox that writes nothing',
  'workspace-write': 'commands run in a sandbox that writes nothing elsewhere',
}
const networkText = 'and reaches the network'
const noNetworkText = 'and has no network'
const askText = 'What is asked for beyond that, the user decides.'
const nobodyText = 'Nobody can allow more here: do without, and say what you would need.'

/** What a model is told of the mode it works in. Names no path: paths are foreign text, and this is a template. */
export function describePermissions({ mode, hasNetwork, sandbox, yes, canAsk }: Situation): string {
  const start = `Permission mode: ${mode}.`
  if (mode === 'full-access') return `${start} Nothing is confined.`
  const isBare = sandbox?.isReady === false
  const commands = isBare
    ? unconfinedText(mode, { yes, canAsk })
    : `${confinedTexts[mode]} ${hasNetwork ? networkText : noNetworkText}`
  return `${start} ${filesTexts[mode]}; ${commands}. ${canAsk ? askText : nobodyText}`
}

function unconfinedText(mode: SandboxMode, { yes, canAsk }: Pick<Situation, 'yes' | 'canAsk'>): string {
  const start = 'no sandbox works here, so commands that surely only read run'
  if (mode === 'read-only') return `${start} and others are refused`
  if (yes) return 'no sandbox works here, and commands run with all rights of the user'
  return canAsk ? `${start} and the user is asked for others` : `${start} and others are refused`
}
