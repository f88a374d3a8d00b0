import { appendFileSync, readFileSync } from 'node:fs'
import type { SessionEvent, SessionHeader } from '@dsh/protocol'
import { parseJson } from '../../src/kernel/index.ts'
import type { GenerateOptions } from '../../src/core/llm/index.ts'
import { CrashLedger } from '../../src/testing/crash/ledger.ts'
import { sameRequest, startedCall } from './witnesses.ts'

type Line =
  | { readonly offer: SessionHeader; readonly events: readonly SessionEvent[] }
  | { readonly confirm: SessionHeader; readonly length: number }
  | { readonly keep: SessionHeader; readonly sha256: string; readonly bytes: string }
  | { readonly request: SessionHeader; readonly length: number; readonly sent: SentRequest }
  | { readonly effect: SessionHeader; readonly callId: string }

export type SentRequest = Pick<GenerateOptions, 'messages' | 'system' | 'tools'>

/** A ledger that a killed program leaves behind: each line is with the system before the call returns. */
export class Journal extends CrashLedger {
  readonly #path: string

  constructor(path: string) {
    super(() => 0)
    this.#path = path
  }

  override offer(offer: SessionHeader, events: readonly SessionEvent[]): void {
    this.#write({ offer, events })
  }

  override confirm(confirm: SessionHeader, length: number): void {
    this.#write({ confirm, length })
  }

  override keep(keep: SessionHeader, sha256: string, bytes: Uint8Array): void {
    this.#write({ keep, sha256, bytes: Buffer.from(bytes).toString('base64') })
  }

  request(request: SessionHeader, length: number, { messages, system, tools }: GenerateOptions): void {
    const sent = {
      messages,
      ...(system === undefined ? {} : { system }),
      ...(tools === undefined ? {} : { tools }),
    }
    this.#write({ request, length, sent })
  }

  effect(effect: SessionHeader, callId: string): void {
    this.#write({ effect, callId })
  }

  #write(line: Line): void {
    // The newline first: what a killed program left may be half a line.
    appendFileSync(this.#path, `\n${JSON.stringify(line)}`)
  }
}

/** What a killed program wrote down. */
export interface ReadJournal {
  readonly ledger: CrashLedger
  /** How many events the log had when each request was sent. */
  readonly requests: readonly number[]
  readonly effects: readonly string[]
}

export function readJournal(path: string): ReadJournal {
  const ledger = new CrashLedger(() => 0)
  const requests: number[] = []
  const effects: string[] = []
  for (const text of readFileSync(path, 'utf8').split('\n')) {
    const line = parseJson(text) as Line | undefined
    if (line === undefined) continue
    if ('offer' in line) ledger.offer(line.offer, line.events)
    else if ('confirm' in line) ledger.confirm(line.confirm, line.length)
    else if ('keep' in line) ledger.keep(line.keep, line.sha256, Buffer.from(line.bytes, 'base64'))
    else if ('request' in line) {
      requests.push(line.length)
      ledger.witness(line.request, sameRequest(line.length, line.sent))
    } else {
      effects.push(line.callId)
      ledger.witness(line.effect, startedCall(line.callId))
    }
  }
  return { ledger, requests, effects }
}
