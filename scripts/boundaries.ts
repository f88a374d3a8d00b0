import { globSync } from 'node:fs'
import { cruise } from 'dependency-cruiser'
import type { ICruiseResult } from 'dependency-cruiser'
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options'
import { visitUsingDeclarations } from './visit-using.ts'

visitUsingDeclarations()

const config = new URL('../.dependency-cruiser.mjs', import.meta.url).pathname

interface Report {
  /** The names of all rules. */
  rules: string[]
  /** One line per violation: `rule: from → to`. */
  violations: string[]
  /** Source files that were not read, so that silence about them means nothing. */
  unread: string[]
}

/** Checks every package below `root` against `.dependency-cruiser.mjs`. */
export async function checkBoundaries(root: string): Promise<Report> {
  const options = await extractDepcruiseOptions(config)
  const { output } = await cruise(['packages'], { ...options, baseDir: root })
  const { modules, summary } = output as ICruiseResult
  const read = new Set(modules.map(module => module.source))
  const sources = globSync('packages/*/{bin.js,{src,test}/**/*.{ts,tsx}}', { cwd: root })
  return {
    rules: summary.ruleSetUsed?.forbidden?.map(rule => rule.name ?? '') ?? [],
    violations: summary.violations.map(({ rule, from, to }) => `${rule.name}: ${from} → ${to}`),
    unread: sources.filter(source => !read.has(source)),
  }
}

if (import.meta.main) {
  const { rules, violations, unread } = await checkBoundaries(process.cwd())
  for (const line of violations) console.error(line)
  for (const file of unread) console.error(`not read: ${file}`)
  console.log(`${rules.length} rules, ${violations.length} violations, ${unread.length} files not read`)
  process.exitCode = violations.length + unread.length > 0 ? 1 : 0
}
