import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CallId, SessionId } from '@dsh/protocol'
import type {
  AgentCancelCause,
  CommandSource,
  ContentBlockMap,
  EpochHeader,
  InboxTarget,
  JsonValue,
  LlmCallConfig,
  Message,
  MessageId,
  MessageSource,
  RequestContext,
  SessionEvent,
  SessionEventMap,
  SessionEventType,
  SessionHeader,
  StreamChunk,
  TodoItem,
  ToolErrorInfo,
  ToolSchema,
  TurnEndReasonMap,
  UserMessage,
} from '@dsh/protocol'
import { Context, HarnessError } from '../kernel/index.ts'
import type { Disposer } from '../kernel/index.ts'
import { createHarness, say } from '../testing/index.ts'
import { AgentRegistry, Inbox } from './agent/index.ts'
import type {
  Agent,
  AgentFactory,
  AgentHandle,
  AgentOptions,
  AgentStatus,
  CancelOptions,
} from './agent/index.ts'
import { Commands, parseCommand } from './commands/index.ts'
import type {
  CommandDefinition,
  CommandDescriptor,
  CommandExecution,
  EncodedImage,
} from './commands/index.ts'
import {
  BlockAssembler,
  createAssistantMessage,
  createMessage,
  createToolResultMessage,
  createUserMessage,
  LlmAdapter,
  LlmError,
  LlmRuntime,
} from './llm/index.ts'
import type {
  ConfigurableProvider,
  GenerateOptions,
  LlmResolvedModelInfo,
  ModelDiscovery,
  PreparedCall,
  RetryPolicy,
} from './llm/index.ts'
import { AgentLoop } from './loop/index.ts'
import { renderContextSnapshot, renderPrompt, SystemPrompt } from './prompt/index.ts'
import type {
  AssembleContext,
  PromptAssembly,
  PromptContext,
  PromptSection,
  PromptToolProvider,
  PromptVariable,
} from './prompt/index.ts'
import {
  AnonymousEntries,
  bindScopeParent,
  createScope,
  NamedEntries,
  scopeChainOf,
  ScopedLayers,
  scopeOf,
  scopeTarget,
} from './scope/index.ts'
import {
  canonicalHeader,
  deriveEventMessage,
  foldRequestHeader,
  foldSurface,
  headerEquals,
  interruptedTurnClosers,
  isAppendSurfaceEvent,
  isJsonValue,
  isReplacementSurfaceEvent,
  isSurfaceEvent,
  Session,
  SessionStore,
  snapshotJsonValue,
  SurfaceManager,
} from './session/index.ts'
import type { FoldDefinition } from './session/index.ts'
import { defineTool, ToolRuntime } from './tools/index.ts'
import type { ToolDefinition, ToolExecution, ToolExecutionInput, ToolExecutionResult } from './tools/index.ts'

// What others are compiled against, said apart from what is there: a signature that changes does not compile here.

interface SessionContract {
  readonly id: SessionId
  readonly header: SessionHeader
  readonly surface: { readonly nodes: readonly number[]; readonly replaceGeneration: number }
  readonly firstLiveSeq: number
  readonly events: readonly SessionEvent[]
  readonly seq: number
  readonly length: number
  readonly messages: readonly Message[]
  requestHeader(): EpochHeader | undefined
  requestContext(): RequestContext | undefined
  deriveMessages(): Message[]
  deriveEventMessage(event: SessionEvent): Message | null
  at(seq: number): SessionEvent | undefined
  since(seq: number): Iterable<SessionEvent>
  last<Type extends SessionEventType>(type: Type): SessionEvent<Type> | undefined
  fold<State, Type extends SessionEventType>(
    definition: FoldDefinition<State, Type>,
    options?: { readonly before?: number },
  ): State
  streamOf(seq: number): StreamChunk[]
  readonly artifacts: {
    put(bytes: Uint8Array, type: string): Promise<{ readonly sha256: string; readonly bytes: number }>
    get(sha256: string): Promise<Uint8Array | undefined>
  }
}

interface SessionStoreContract {
  create(
    id?: SessionId,
    options?: { readonly seed?: readonly SessionEvent[]; readonly meta?: { readonly cwd?: string } },
  ): Session
  prepare(id?: SessionId): Session
  enter(session: Session): Disposer
  announce(session: Session): void
  flush(session: Session): Promise<boolean>
  get(id: SessionId): Session | undefined
  list(): Session[]
  fork(
    source: Session | SessionId,
    boundary?: number,
    childId?: SessionId,
    options?: { readonly openTurn?: 'reject' | 'close' },
  ): Session
}

interface AgentContract {
  readonly id: SessionId
  readonly ctx: Context
  readonly options: AgentOptions
  readonly session: Session
  readonly status: AgentStatus
  readonly inbox: {
    readonly nextTurn: readonly UserMessage[]
    readonly nextStep: readonly UserMessage[]
    readonly hasPending: boolean
    append(target: InboxTarget, ...messages: readonly UserMessage[]): void
    prepend(target: InboxTarget, ...messages: readonly UserMessage[]): void
    replace(id: MessageId, message: UserMessage): boolean
    remove(id: MessageId): boolean
    clear(): void
    splice(
      target: InboxTarget,
      start: number,
      count: number,
      inserted: readonly UserMessage[],
    ): readonly UserMessage[]
    claim(target: InboxTarget, turn: number): readonly UserMessage[]
  }
  followup(message: UserMessage): void
  steer(message: UserMessage): void
  inject(message: UserMessage): void
  send(message: UserMessage, target: InboxTarget, wakeup: boolean): void
  cancel(cause: AgentCancelCause, options?: CancelOptions): void
  whenIdle(): Promise<void>
  runMaintenance<T>(job: (signal: AbortSignal) => Promise<T>): Promise<T>
}

interface AgentRegistryContract {
  create(options: { readonly sessionId?: SessionId; readonly signal?: AbortSignal }): Promise<AgentHandle>
  resume(options: {
    readonly resumeSessionId: SessionId
    readonly signal?: AbortSignal
  }): Promise<AgentHandle>
  setFactory(factory: AgentFactory): Disposer
  register(agent: Agent): Disposer
  enter(agent: Agent, owner?: Agent): Disposer
  announce(agent: Agent): void
  get(id: SessionId): Agent | undefined
  list(): Agent[]
  roots(): Agent[]
  isOwnedBy(id: SessionId, owner: Agent): boolean
  currentInitiator(): Agent | undefined
  requireInitiator(): Agent
  withInitiator<T>(agent: Agent, operation: () => T): T
  withoutInitiator<T>(operation: () => T): T
}

interface AgentLoopContract extends AgentFactory {
  create(id?: SessionId, options?: AgentOptions, meta?: { readonly cwd?: string }): Agent
}

interface ToolRuntimeContract {
  register(definition: ToolDefinition): Disposer
  restrict(restriction: { readonly allow?: readonly string[]; readonly deny?: readonly string[] }): Disposer
  guard(guard: (execution: ToolExecution) => string | undefined): Disposer
  get(name: string, scope?: object | null): ToolDefinition | undefined
  schemas(scope?: object | null): readonly ToolSchema[]
  executionMode(call: ToolExecutionInput): 'parallel' | 'exclusive'
  execute(input: ToolExecutionInput): Promise<ToolExecutionResult>
  presentAs(presentation: 'native' | 'code' | 'both'): Disposer
}

interface LlmRuntimeContract {
  registerAdapter(
    providers: readonly string[],
    adapter: LlmAdapter,
  ): Disposer & { replace(providers: readonly string[]): void }
  listProviders(): readonly { readonly id: string; readonly name: string }[]
  listModels(provider: string): Promise<readonly LlmResolvedModelInfo[]>
  resolveModelInfo(provider: string, model: string, signal?: AbortSignal): Promise<LlmResolvedModelInfo>
  resolveCallConfig(config: LlmCallConfig, signal?: AbortSignal): Promise<{ readonly config: LlmCallConfig }>
  prepareCall(config: LlmCallConfig, signal?: AbortSignal): Promise<PreparedCall>
  stream(options: GenerateOptions): AsyncIterable<StreamChunk>
  providerRetryPolicy(provider: string): RetryPolicy | undefined
  registerConfigurableProviders(providers: readonly ConfigurableProvider[]): Disposer
  listConfigurableProviders(): readonly ConfigurableProvider[]
  registerModelDiscovery(provider: string, discover: ModelDiscovery): Disposer
  discoverModels(
    provider: string,
    settings?: Readonly<Record<string, JsonValue>>,
    signal?: AbortSignal,
  ): Promise<readonly LlmResolvedModelInfo[]>
}

interface SystemPromptContract {
  section(section: PromptSection): Disposer
  context(context: PromptContext): Disposer
  suppressRuntimeContext(): Disposer
  tools(provider: PromptToolProvider): Disposer
  variable(name: string, provider: PromptVariable): Disposer
  assemble(context?: AssembleContext): Promise<PromptAssembly>
}

interface CommandsContract {
  register(definition: CommandDefinition): Disposer
  list(agent: Agent): readonly CommandDescriptor[]
  find(agent: Agent, name: string): CommandDescriptor | undefined
  execute(
    agent: Agent,
    line: string,
    signal: AbortSignal,
    options?: { readonly images?: readonly EncodedImage[] },
  ): Promise<CommandExecution | undefined>
}

interface Contracts {
  readonly session: SessionContract
  readonly sessions: SessionStoreContract
  readonly agent: AgentContract
  readonly agents: AgentRegistryContract
  readonly agentLoop: AgentLoopContract
  readonly tools: ToolRuntimeContract
  readonly llm: LlmRuntimeContract
  readonly systemPrompt: SystemPromptContract
  readonly commands: CommandsContract
}

interface StaticContract {
  create(id: SessionId, seed?: readonly SessionEvent[], header?: SessionHeader): Session
  fromRestore(id: SessionId, seed: readonly SessionEvent[], header: SessionHeader): Session
}

/** Members of each part, as they are read at run time. */
const members: { readonly [Part in keyof Contracts]: readonly (readonly (keyof Contracts[Part])[])[] } = {
  session: [
    ['id', 'header', 'surface', 'firstLiveSeq', 'events', 'seq', 'length', 'messages', 'artifacts'],
    ['requestHeader', 'requestContext', 'deriveMessages', 'deriveEventMessage'],
    ['at', 'since', 'last', 'fold', 'streamOf'],
  ],
  sessions: [['create', 'prepare', 'enter', 'announce', 'flush', 'get', 'list', 'fork']],
  agent: [
    ['id', 'ctx', 'options', 'session', 'status', 'inbox'],
    ['followup', 'steer', 'inject', 'send', 'cancel', 'whenIdle', 'runMaintenance'],
  ],
  agents: [
    ['create', 'resume', 'setFactory', 'register', 'enter', 'announce', 'get', 'list', 'roots', 'isOwnedBy'],
    ['currentInitiator', 'requireInitiator', 'withInitiator', 'withoutInitiator'],
  ],
  agentLoop: [['create', 'createAgent', 'resume']],
  tools: [['register', 'restrict', 'guard', 'get', 'schemas', 'executionMode', 'execute', 'presentAs']],
  llm: [
    ['registerAdapter', 'listProviders', 'listModels', 'resolveModelInfo', 'resolveCallConfig'],
    ['prepareCall', 'stream', 'providerRetryPolicy', 'registerConfigurableProviders'],
    ['listConfigurableProviders', 'registerModelDiscovery', 'discoverModels'],
  ],
  systemPrompt: [['section', 'context', 'suppressRuntimeContext', 'tools', 'variable', 'assemble']],
  commands: [['register', 'list', 'find', 'execute']],
}

test('services, sessions and agents have the members that plugins are compiled against', async () => {
  const { ctx, agent: make } = await createHarness()
  const agent = make()
  const { sessions: store, agents: registry, agentLoop, tools: runtime, llm: models } = ctx
  const contracts: Contracts = {
    session: agent.session,
    sessions: store,
    agent,
    agents: registry,
    agentLoop,
    tools: runtime,
    llm: models,
    systemPrompt: ctx.systemPrompt,
    commands: ctx.commands,
  }
  for (const [part, names] of Object.entries(members))
    for (const name of names.flat()) assert.ok(name in contracts[part as keyof Contracts], `${part}.${name}`)
  assert.deepEqual(Object.keys(contracts).sort(), Object.keys(members).sort())
})

test('sessions are made with the arguments that others write, and an event comes back with its type', () => {
  const statics: StaticContract = Session
  const header: SessionHeader = { version: 0, id: SessionId('s'), createdAt: 1 }
  const session = statics.create(header.id, [], header)
  const event: SessionEvent<'turn/start'> = session.append('turn/start', { turn: 1 })
  const message: SessionEvent<'user/message'> = session.append('user/message', say('hi'), {
    surfaceOp: 'append',
    sourceEventSeqs: [event.seq],
  })
  const restored = statics.fromRestore(header.id, [], header)
  assert.deepEqual([message.seq, restored.length], [2, 1])
})

test('the names that others import are exported', () => {
  const functions = [
    [SessionId, CallId, Context, HarnessError],
    [Session, SessionStore, SurfaceManager, interruptedTurnClosers, snapshotJsonValue, isJsonValue],
    [foldSurface, deriveEventMessage, isSurfaceEvent, isAppendSurfaceEvent, isReplacementSurfaceEvent],
    [foldRequestHeader, canonicalHeader, headerEquals],
    [LlmRuntime, LlmAdapter, LlmError, BlockAssembler],
    [createMessage, createUserMessage, createAssistantMessage, createToolResultMessage],
    [SystemPrompt, renderPrompt, renderContextSnapshot, ToolRuntime, defineTool],
    [AgentRegistry, Inbox, AgentLoop, Commands, parseCommand],
    [createScope, scopeOf, bindScopeParent, scopeChainOf, scopeTarget],
    [ScopedLayers, NamedEntries, AnonymousEntries],
  ]
  for (const each of functions.flat()) assert.equal(typeof each, 'function')
  const facts: [CommandSource, MessageSource, ContentBlockMap['text'], TodoItem, ToolErrorInfo] = [
    { kind: 'user' },
    { kind: 'model', provider: 'p', model: 'm' },
    { type: 'text', text: '' },
    { content: '', status: 'pending' },
    { name: 'E', code: 'E', reason: '' },
  ]
  const ends: TurnEndReasonMap['aborted']['reason'] = { kind: 'legacy' }
  const result: SessionEventMap['command/done']['kind'] = 'success'
  assert.deepEqual([facts.length, ends.kind, result], [5, 'legacy', 'success'])
})
