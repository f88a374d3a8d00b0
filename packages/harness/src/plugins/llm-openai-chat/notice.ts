/** Something was mended, skipped or decided on the way to or from a provider, and nothing failed. */
export interface WireNotice {
  readonly code: WireNoticeCode
  readonly provider: string
  readonly model?: string
  /** One sentence that names the value. */
  readonly text: string
  /** The message it is about. */
  readonly messageId?: string
  readonly count?: number
}

export type WireNoticeCode =
  /** Half a character became U+FFFD. */
  | 'LONE_SURROGATE'
  /** Arguments of an old tool call were no JSON object and went out as `{}`. */
  | 'BAD_ARGUMENTS'
  /** A name or id of an old tool call had to be changed for this host. */
  | 'RENAMED_CALL'
  /** A tool call without a result, a result without a call, or a second result. */
  | 'MENDED_PAIRING'
  /** An assistant message without anything to send. */
  | 'EMPTY_MESSAGE'
  /** A picture that could not be sent. */
  | 'BAD_IMAGE'
  /** A kind of content this format has no word for. */
  | 'UNKNOWN_BLOCK'
  /** A tool, or a part of its schema, that could not be sent. */
  | 'BAD_TOOL_SCHEMA'
  /** An option that this host ignores or refuses. */
  | 'OPTION_LEFT_OUT'
  /** The host refused a habit of ours; it is asked without it from now on. */
  | 'QUIRK_LEARNED'
  /** A line of the stream that was no JSON. */
  | 'SKIPPED_LINE'
  /** A finish reason nobody knows, taken for a normal end. */
  | 'UNKNOWN_FINISH'
  /** A tool call that came without a name, or repeated itself. */
  | 'MENDED_CALL'
  /** A field of the config that nobody reads, or that is not usable. */
  | 'BAD_CONFIG'

export type ReportNotice = (notice: WireNotice) => void
