import { HarnessError } from '../../kernel/index.ts'

export type AgentErrorCode =
  | 'AGENT_EXISTS'
  /** Maintenance was asked for while a turn or other maintenance runs. */
  | 'AGENT_BUSY'
  /** Input for an agent whose session is no longer kept. */
  | 'AGENT_DISPOSED'
  | 'DUPLICATE_MESSAGE'
  | 'NO_FACTORY'
  | 'DUPLICATE_FACTORY'
  | 'NO_INITIATOR'
  /** Work was started, or asked for, on a registry that is ending. */
  | 'REGISTRY_ENDED'

/** Something about agents went wrong that a program may want to tell apart. */
export class AgentError extends HarnessError<AgentErrorCode> {
  static {
    this.prototype.name = 'AgentError'
  }
}
