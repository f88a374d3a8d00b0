import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { constants, Script } from 'node:vm'
import { crc32 } from 'node:zlib'

export interface CachedScript {
  readonly exports: Readonly<Record<string, unknown>>
  /** For the end of the process: keeps what was compiled for the next one. Costs it some milliseconds. */
  keep(): void
}

interface Kept {
  readonly code: Buffer
  /** How many processes added what they used. */
  readonly rounds: number
}

/** A few runs have used what most runs use; what later ones would add is not worth their time. */
const enoughRounds = 5
const headerSize = 8

/**
 * Runs a script of ASCII text, with the functions that earlier processes compiled, kept in `folder` under the script's
 * name, which must change with its text. Node's own cache holds a module as it was when it was loaded, before most of its
 * functions were compiled.
 *
 * The text is one function of `module`, `require` and the URL of its file; to put it into one here would copy all of it.
 * Without a folder, or where nothing in it is of use, all is compiled anew.
 */
export function runCached(file: URL, folder: string | undefined): CachedScript {
  const filename = fileURLToPath(file)
  const path = folder === undefined ? undefined : join(folder, `${basename(filename)}.cache`)
  const kept = path === undefined ? undefined : readKept(path)
  const script = new Script(readFileSync(filename, 'latin1'), {
    filename,
    ...(kept === undefined ? {} : { cachedData: kept.code }),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  })
  const module = { exports: {} }
  script.runInThisContext()(module, createRequire(file), file.href)
  const rounds = kept === undefined || script.cachedDataRejected === true ? 0 : kept.rounds
  return {
    exports: module.exports,
    keep() {
      if (path !== undefined && rounds < enoughRounds)
        writeKept(path, { code: script.createCachedData(), rounds: rounds + 1 })
    },
  }
}

/** Undefined where there is nothing whole: V8 itself does not look for damage. */
function readKept(path: string): Kept | undefined {
  let bytes: Buffer
  try {
    bytes = readFileSync(path)
  } catch {
    return undefined
  }
  if (bytes.length < headerSize) return undefined
  const code = bytes.subarray(headerSize)
  return crc32(code) === bytes.readUInt32LE(0) ? { code, rounds: bytes.readUInt32LE(4) } : undefined
}

/** A folder that cannot be written costs the cache, nothing else. */
function writeKept(path: string, { code, rounds }: Kept): void {
  const header = Buffer.alloc(headerSize)
  header.writeUInt32LE(crc32(code), 0)
  header.writeUInt32LE(rounds, 4)
  const draft = `${path}.${Math.random().toString(36).slice(2)}`
  try {
    writeFileSync(draft, Buffer.concat([header, code]), { mode: 0o600 })
    renameSync(draft, path)
  } catch {
    rmSync(draft, { force: true })
  }
}
