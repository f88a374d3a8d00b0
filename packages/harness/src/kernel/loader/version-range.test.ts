import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isInRange } from './version-range.ts'

test('a range holds for the versions that npm would take, and for no others', () => {
  const cases: [range: string, inside: string[], outside: string[]][] = [
    ['1.2.3', ['1.2.3', '1.2.3-next.1'], ['1.2.2', '1.2.4', '2.0.0']],
    ['=1.2.3', ['1.2.3'], ['1.2.4']],
    ['^1.2.3', ['1.2.3', '1.9.0'], ['1.2.2', '2.0.0']],
    ['^0.2.3', ['0.2.3', '0.2.9'], ['0.2.2', '0.3.0']],
    ['^0.0.3', ['0.0.3'], ['0.0.4']],
    ['^0.0', ['0.0.9'], ['0.1.0']],
    ['^0', ['0.9.9'], ['1.0.0']],
    ['~1.2.3', ['1.2.9'], ['1.3.0', '1.2.2']],
    ['~1', ['1.9.9'], ['2.0.0']],
    ['1.x', ['1.0.0', '1.9.9'], ['2.0.0', '0.9.9']],
    ['1.2', ['1.2.9'], ['1.3.0']],
    ['>=1.2 <2', ['1.2.0', '1.9.9'], ['1.1.9', '2.0.0']],
    ['>= 1.2', ['1.2.0', '9.0.0'], ['1.1.9']],
    ['>1.2', ['1.3.0'], ['1.2.9']],
    ['>1.2.3', ['1.2.4'], ['1.2.3']],
    ['<=1.2', ['1.2.9', '0.1.0'], ['1.3.0']],
    ['<1.2', ['1.1.9'], ['1.2.0']],
    ['1.2 - 1.4', ['1.2.0', '1.4.9'], ['1.5.0', '1.1.9']],
    ['^1 || ^3', ['1.5.0', '3.0.0'], ['2.0.0']],
    ['v1.2.3', ['1.2.3'], ['1.2.4']],
  ]
  for (const [range, inside, outside] of cases) {
    for (const version of inside) assert.ok(isInRange(version, range), `${version} in ${range}`)
    for (const version of outside) assert.ok(!isInRange(version, range), `${version} not in ${range}`)
  }
})

test('a range that names no versions holds for all', () => {
  for (const range of ['*', '', 'x', 'latest', 'workspace:*', 'file:../host', 'https://example.org/a.tgz'])
    assert.ok(isInRange('0.1.0', range), range)
})
