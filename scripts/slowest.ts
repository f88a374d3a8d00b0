import type { TestEvent } from 'node:test/reporters'

/** A test reporter that names the five slowest tests, to stand beside `spec`. */
export default async function* slowest(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const tests: { name: string; file: string; took: number }[] = []
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    if (data.details.type === 'suite') continue
    tests.push({ name: data.name, file: data.file ?? '', took: data.details.duration_ms })
  }
  yield '\nslowest:\n'
  for (const { name, file, took } of tests.sort((a, b) => b.took - a.took).slice(0, 5)) {
    yield `${took.toFixed(0).padStart(6)} ms  ${name} (${file.replace(`${process.cwd()}/`, '')})\n`
  }
}
