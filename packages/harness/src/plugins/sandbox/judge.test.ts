import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeConfined } from './judge.ts'
import type { RunnerFailureRule } from './service.ts'
import { hiddenRefusals, kernelRefusals, networkRefusals } from './signatures.ts'

const rule: RunnerFailureRule = {
  exitCodes: [1, 125],
  fatalSignatures: ['Runner: ', ' '],
  informationalLines: ['runner: an older kernel, some rules are left out'],
}

function judge(exitCode: number | null, stderr: string, signal: string | null = null, stdout?: string) {
  const confined = {
    denialSignatures: [...kernelRefusals, ...hiddenRefusals],
    networkSignatures: networkRefusals,
    runnerFailureRules: [rule],
  }
  return judgeConfined({ exitCode, signal, stderr, ...(stdout !== undefined && { stdout }), confined })
}

test('a line of the runner is its failure, and comes before a denial', () => {
  const line = 'runner: no namespace'
  assert.deepEqual(judge(1, `a: read-only file system\n${line}\nmore`), { kind: 'runner-failed', line })
  assert.deepEqual(judge(125, `RUNNER: x\r\n`), { kind: 'runner-failed', line: 'RUNNER: x' })
})

test('a refusal of the kernel is a denial', () => {
  assert.deepEqual(judge(2, 'touch: x: READ-ONLY FILE SYSTEM'), { kind: 'denied', access: 'files' })
})

test('what programs print without network is told apart from what they print of files', () => {
  const network = [
    'curl: (6) Could not resolve host: example.org',
    'ssh: Could not resolve hostname example.org: Temporary failure in name resolution',
    'wget: unable to resolve host address ‘example.org’',
    'npm error code EAI_AGAIN',
    'Error: connect ENETUNREACH 10.0.0.1:5432 - Local (0.0.0.0:0)',
    'urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>',
    'psql: error: could not translate host name "db" to address: Name or service not known',
    'go: dial tcp: lookup proxy.golang.org on 127.0.0.53:53: read udp: connection refused',
    'java.net.UnknownHostException: repo.maven.apache.org',
    "Temporary failure resolving 'deb.debian.org'",
  ]
  for (const line of network) {
    assert.deepEqual(judge(1, `x\n${line}\ny`), { kind: 'denied', access: 'network' }, line)
    assert.deepEqual(judge(1, '', null, line), { kind: 'denied', access: 'network' }, 'tests print it there')
    assert.equal(judge(0, line), undefined)
  }
  const files = [
    'error: gpg failed to sign the data',
    'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
    'Host key verification failed.',
    "mv: cannot move '.vscode' to 'x': Device or resource busy",
  ]
  for (const line of files) assert.deepEqual(judge(1, line), { kind: 'denied', access: 'files' }, line)
  assert.deepEqual(judge(1, `${files[0]}\n${network[0]}`), { kind: 'denied', access: 'network' })
  assert.equal(judge(1, 'connect ECONNREFUSED 127.0.0.1:3000'), undefined, 'a server may just be down')
})

test('of standard output only what is sure counts', () => {
  assert.equal(judge(1, '', null, 'ok 3 - tells that permission denied is an error'), undefined)
  const sure = "OSError: [Errno 30] Read-only file system: '/home/u/.cache'"
  assert.deepEqual(judge(1, '', null, sure), { kind: 'denied', access: 'files' })
})

test('folders that hold names and could not be removed are told apart from other refusals', () => {
  const held = 'warning: failed to remove .claude/.gitignore: Read-only file system'
  assert.deepEqual(judge(1, `${held}\nrm: cannot remove './.envrc/.gitignore': Read-only file system`), {
    kind: 'denied',
    access: 'held-names',
  })
  assert.deepEqual(judge(1, `${held}\nrm: /etc/x: Permission denied`), { kind: 'denied', access: 'files' })
})

test('success and a death by signal are never put down to the sandbox', () => {
  const stderr = 'runner: no namespace\nread-only file system'
  assert.equal(judge(0, stderr), undefined)
  assert.equal(judge(null, stderr, 'SIGKILL'), undefined)
  assert.equal(judge(1, stderr, 'SIGKILL'), undefined)
})

test('a notice of the runner and a command that finds nothing are no failure of the runner', () => {
  assert.equal(judge(1, 'Runner: an older kernel, some rules are left out\n'), undefined)
  assert.deepEqual(judge(1, 'runner: an older kernel, some rules are left out, and more'), {
    kind: 'runner-failed',
    line: 'runner: an older kernel, some rules are left out, and more',
  })
})

test('another exit code, a blank signature, and one that two lines make up count for nothing', () => {
  assert.equal(judge(2, 'runner: no namespace'), undefined)
  assert.equal(judge(1, 'some words\n'), undefined)
  assert.equal(judge(1, 'runner:\n no namespace'), undefined)
})
