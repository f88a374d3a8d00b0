import type { SessionEvent } from '@dsh/protocol'
import type { FoldDefinition } from '../../core/session/index.ts'

const none: ReadonlySet<string> = new Set()

/** The hosts that the person named in a message: as they stand in an address, with the port where it is not the usual one. */
export const namedHosts: FoldDefinition<ReadonlySet<string>, 'user/message'> = {
  name: 'hosts named by the person',
  types: ['user/message'],
  init: () => none,
  apply(state, event) {
    const found = hostsOf(event).filter(host => !state.has(host))
    return found.length === 0 ? state : new Set([...state, ...found])
  },
}

function hostsOf({ data: message }: SessionEvent<'user/message'>): string[] {
  if (message.source.kind !== 'user') return []
  return message.content.flatMap(block => (block.type === 'text' ? hostsIn(block.text) : []))
}

const address = /\bhttps?:\/\/[^\s<>"'`]+/gi
const bareName = /(?<![\w@./:-])(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}(?::\d+)?(?![\w@-])/gi

/** Addresses, and bare names that are not also names of files. */
function hostsIn(text: string): string[] {
  const addresses = text.match(address) ?? []
  const names = (text.match(bareName) ?? []).filter(name => !fileEndings.has(endingOf(name)))
  const urls = [...addresses, ...names.map(name => `https://${name}/`)]
  return urls.flatMap(url => URL.parse(url)?.host ?? [])
}

function endingOf(name: string): string {
  const plain = name.replace(/:\d+$/, '')
  return plain.slice(plain.lastIndexOf('.') + 1).toLowerCase()
}

/** Endings of files that are ends of host names too: who says `main.rs` names no host. */
const fileEndings = new Set(
  (
    'as bat bin bz cab cc cfg cs css csv dat db doc go gz hs html ini java jl js json jsx kt lock log lua md mk ml mm ' +
    'mov mp3 mp4 pdf php pl pm png ps py rb rs sc scala sh so sql st svg swift tar tex tf toml ts tsx txt vb vi vue ' +
    'wasm xml yaml yml zip zsh'
  ).split(' '),
)
