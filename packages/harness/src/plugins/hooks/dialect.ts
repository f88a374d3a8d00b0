import { hookPoints } from './events.ts'
import type { HookDialectName, HookPoint } from './events.ts'
import type { MatcherMode } from './matcher.ts'

/** In what hook files of two programs differ. */
export interface HookDialect {
  readonly name: HookDialectName
  readonly points: ReadonlySet<HookPoint>
  readonly matcherMode: MatcherMode
  /** Whether a line break follows the payload on standard input. */
  readonly endsLine: boolean
  /** Where plain text on standard output is context for the model. */
  readonly contextFromStdout: ReadonlySet<HookPoint>
  /** Decisions of a tool call that count. */
  readonly decisions: ReadonlySet<'allow' | 'ask' | 'deny'>
  readonly timeoutFields: readonly string[]
  readonly payloadFields: 'claude' | 'codex'
  /** Variables that hold the folder of the session. */
  readonly folderVariables: readonly string[]
}

const contextFromStdout: ReadonlySet<HookPoint> = new Set(['SessionStart', 'UserPromptSubmit'])

export const dialects: Readonly<Record<HookDialectName, HookDialect>> = {
  claude: {
    name: 'claude',
    points: new Set(hookPoints),
    matcherMode: 'names',
    endsLine: true,
    contextFromStdout,
    decisions: new Set(['allow', 'ask', 'deny']),
    timeoutFields: ['timeout'],
    payloadFields: 'claude',
    folderVariables: ['CLAUDE_PROJECT_DIR'],
  },
  codex: {
    name: 'codex',
    points: new Set(['SessionStart', 'UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop']),
    matcherMode: 'pattern',
    endsLine: false,
    contextFromStdout,
    decisions: new Set(['allow', 'deny']),
    timeoutFields: ['timeout', 'timeoutSec'],
    payloadFields: 'codex',
    folderVariables: [],
  },
}
