import { fork } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { basename, join } from 'node:path'
import { table } from './figure.ts'
import type { Figure } from './figure.ts'

// Each file runs in a process of its own, so that none is measured in the heap of another.
const only = process.argv.slice(2)
const files = globSync('micro/*.ts', { cwd: import.meta.dirname })
  .filter(file => only.length === 0 || only.includes(basename(file, '.ts')))
  .sort()

const figures: Figure[] = []
for (const file of files) {
  process.stderr.write(`${file}\n`)
  const child = fork(join(import.meta.dirname, file), {
    execArgv: ['--conditions=dsh-source', '--expose-gc'],
  })
  child.on('message', figure => figures.push(figure as Figure))
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) console.log(`${file} failed`)
}
console.log(table(figures, 'head'))
