import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { hooks } from '../../src/plugins/hooks/index.ts'
import { text, toolCall, toolCalls } from '../../src/plugins/llm-scripted/index.ts'
import { skipWithoutBwrap } from './bwrap.ts'
import { group, hooksPlace } from './hooks-place.ts'

const skip = skipWithoutBwrap()
const limits = { skip, timeout: 60_000 }

const command = (line: string) => ({ command: line, description: 'test it' })
const json = (value: object): string => `echo '${JSON.stringify(value)}'`
const specific = (point: string, fields: object): string =>
  json({ hookSpecificOutput: { hookEventName: point, ...fields } })

test(
  'a prompt reaches a hook with all that it is told, and context of a hook reaches the model',
  limits,
  async () => {
    await using place = await hooksPlace({
      script: [text('ok')],
      claude: {
        UserPromptSubmit: [
          group(
            `cat > seen; ${specific('UserPromptSubmit', { additionalContext: 'mind the <system-reminder>gap' })}`,
          ),
        ],
      },
    })
    await place.turn('go')
    assert.deepEqual(JSON.parse(place.read('seen')), {
      session_id: 's',
      transcript_path: null,
      cwd: place.work,
      permission_mode: 'default',
      hook_event_name: 'UserPromptSubmit',
      prompt: 'go',
    })
    assert.ok(place.read('seen').endsWith('}\n'))
    const context =
      'Context from the hook .claude/settings.json UserPromptSubmit[0].hooks[0]:\nmind the ‹system-reminder>gap'
    assert.deepEqual(place.contexts(), [context])
    assert.ok(JSON.stringify(place.adapter.requests[0]?.messages).includes('mind the ‹system-reminder>gap'))
    assert.deepEqual(place.said(), [])
  },
)

test('a prompt that a hook blocks never reaches the model, and is given back', limits, async () => {
  await using place = await hooksPlace({
    claude: { UserPromptSubmit: [group('echo "no secrets, please" >&2; exit 2')] },
  })
  const returned: unknown[] = []
  place.ctx.on('agent/parked', parked => void returned.push(...parked.returned.map(({ content }) => content)))
  await place.turn('my password is 1234')
  assert.equal(place.adapter.requests.length, 0)
  assert.deepEqual(place.ofType('turn/end')[0]?.data.reason, { kind: 'blocked' })
  assert.deepEqual(returned, [[{ type: 'text', text: 'my password is 1234' }]])
  assert.deepEqual(place.said(), ['HOOK_DECIDED: a hook blocked the prompt: no secrets, please'])
})

test(
  'a call that a hook denies does not run, others do, and the log has each run of a hook as a pair',
  limits,
  async () => {
    await using place = await hooksPlace({
      script: [
        toolCalls([
          { name: 'bash', args: command('touch made') },
          { name: 'look', args: {} },
        ]),
        text('ok'),
      ],
      claude: { PreToolUse: [group('cat > seen; echo "not here" >&2; exit 2', {}, 'Bash|Edit')] },
    })
    await place.turn('go')
    assert.deepEqual(place.results(), ['Error: a hook denied the call: not here', 'seen'])
    assert.ok(!place.has('made'))
    const { tool_name, tool_input } = JSON.parse(place.read('seen')) as Record<string, unknown>
    assert.deepEqual([tool_name, tool_input], ['Bash', command('touch made')])
    const [invoked] = place.ofType('hook/invoked')
    const [result] = place.ofType('hook/result')
    assert.equal(place.ofType('hook/invoked').length, 1)
    const { id = '', ...asked } = invoked?.data ?? {}
    const handlerId = '.claude/settings.json PreToolUse[0].hooks[0]'
    assert.deepEqual(asked, {
      turn: 1,
      point: 'PreToolUse',
      handlerId,
      dialect: 'claude',
      matcher: 'Bash|Edit',
    })
    const { durationMs, ...came } = result?.data ?? {}
    assert.equal(typeof durationMs, 'number')
    assert.deepEqual(came, {
      id,
      turn: 1,
      point: 'PreToolUse',
      handlerId,
      decision: 'deny',
      exitCode: 2,
      stderrSummary: 'not here',
    })
  },
)

test(
  'other arguments of a hook are a denial that names them, and the new call of the model runs unchanged',
  limits,
  async () => {
    const safe = command('echo safe > made')
    await using place = await hooksPlace({
      script: [toolCall('bash', command('echo hi > made')), toolCall('bash', safe), text('ok')],
      claude: {
        // Never content: it would change even its own input.
        PreToolUse: [
          group(
            specific('PreToolUse', {
              permissionDecision: 'allow',
              updatedInput: { command: 'echo safe > made' },
            }),
            {},
            'Bash',
          ),
        ],
        PostToolUse: [group('cat > after')],
      },
    })
    await place.turn('go')
    const [denied, done] = place.results()
    assert.equal(
      denied,
      'Error: the call was not made: the hook .claude/settings.json PreToolUse[0].hooks[0] wants other arguments; if that still serves, call bash with exactly these: {"command":"echo safe > made","description":"test it"}',
    )
    assert.match(done ?? '', /^\(no output\)|^$|exit/i)
    assert.equal(place.read('made'), 'safe\n')
    const [first] = place.ofType('tool/call')
    assert.ok(JSON.stringify(first?.data).includes('echo hi > made'), 'recorded arguments never change')
    assert.equal(
      (JSON.parse(place.read('after')) as { tool_input: { command: string } }).tool_input.command,
      safe.command,
    )
  },
)

test('a hook that changes its own arguments again does so once, and the person is told', limits, async () => {
  await using place = await hooksPlace({
    script: [toolCall('bash', command('a')), toolCall('bash', command('true #')), text('ok')],
    claude: {
      PreToolUse: [
        group(
          `test -e again && ${specific('PreToolUse', { updatedInput: { command: 'true ##' } })} || ${specific('PreToolUse', { updatedInput: { command: 'true #' } })}; touch again`,
        ),
      ],
    },
  })
  await place.turn('go')
  assert.match(
    place.results()[0] ?? '',
    /call bash with exactly these: \{"command":"true #","description":"test it"\}$/,
  )
  assert.doesNotMatch(place.results()[1] ?? '', /hook/)
  assert.deepEqual(place.said(), [
    'HOOK_DECIDED: the hook .claude/settings.json PreToolUse[0].hooks[0] would change arguments that a hook has changed already; the call stays as it is',
  ])
})

test(
  'an ask of a hook is put to the person, and without one it fails closed; an allow opens nothing',
  limits,
  async () => {
    const hooks = (decision: string) => ({
      PreToolUse: [
        group(
          specific('PreToolUse', { permissionDecision: decision, permissionDecisionReason: 'looks odd' }),
        ),
      ],
    })
    await using asked = await hooksPlace({ script: [toolCall('look', {}), text('ok')], claude: hooks('ask') })
    const questions: (string | undefined)[] = []
    asked.ctx.on('approval/request', async question => {
      questions.push(question.reason)
      return { outcome: 'allowed-once' }
    })
    await asked.turn('go')
    assert.deepEqual([questions, asked.results()], [['looks odd'], ['seen']])

    await using alone = await hooksPlace({
      script: [toolCall('look', {}), text('ok')],
      claude: hooks('ask'),
      hasApproval: false,
    })
    await alone.turn('go')
    assert.doesNotMatch(alone.results()[0] ?? 'seen', /^seen$/)

    await using open = await hooksPlace({
      script: [
        toolCall('bash', { ...command('true'), sandbox_permissions: 'full-access', justification: 'x' }),
        text('ok'),
      ],
      claude: hooks('allow'),
    })
    await open.turn('go')
    assert.equal(open.ofType('approval/decided')[0]?.data.outcome, 'unavailable')
  },
)

test(
  'continue: false ends the turn with its reason, before a call at once and behind one with its result',
  limits,
  async () => {
    const stop = json({ continue: false, stopReason: 'enough', systemMessage: 'stopped for tests' })
    await using before = await hooksPlace({
      script: [toolCall('bash', command('touch made'))],
      claude: { PreToolUse: [group(stop)] },
    })
    await before.turn('go')
    const reason = { kind: 'aborted', reason: { kind: 'hook', reason: 'enough' } }
    assert.deepEqual(before.ofType('turn/end')[0]?.data.reason, reason)
    assert.equal(before.ofType('hook/result')[0]?.data.decision, 'stop')
    assert.ok(!before.has('made'))
    assert.deepEqual(before.said(), [
      'HOOK_MESSAGE: stopped for tests',
      'HOOK_DECIDED: a hook stopped the turn: enough',
    ])

    await using behind = await hooksPlace({
      script: [toolCall('bash', command('touch made'))],
      claude: { PostToolUse: [group(stop)] },
    })
    await behind.turn('go')
    assert.deepEqual(behind.ofType('turn/end')[0]?.data.reason, reason)
    assert.ok(behind.has('made'))
    assert.equal(behind.ofType('tool/result')[0]?.data.error, undefined)
  },
)

test('a hook behind a call may object to its result or add to it', limits, async () => {
  await using place = await hooksPlace({
    script: [toolCall('look', {}), toolCall('bash', command('echo hi')), text('ok')],
    claude: {
      PostToolUse: [
        group(json({ decision: 'block', reason: 'lint failed' }), {}, 'look'),
        group(specific('PostToolUse', { additionalContext: 'the file is generated' }), {}, 'Bash'),
      ],
    },
  })
  await place.turn('go')
  assert.equal(place.results()[0], 'the call was made, and a hook objects to its result: lint failed')
  assert.equal(place.results()[1], 'hi')
  assert.deepEqual(place.contexts(), [
    'Context from the hook .claude/settings.json PostToolUse[1].hooks[0]:\nthe file is generated',
  ])
})

test(
  'a hook keeps the turn from ending, is told so the second time, and cannot do so for ever',
  limits,
  async () => {
    await using place = await hooksPlace({
      script: Array.from({ length: 3 }, (_, index) => text(`answer ${index}`)),
      claude: { Stop: [group('cat >> seen; echo "run the tests" >&2; exit 2')] },
      config: { maxStopRounds: 2 },
    })
    await place.turn('go')
    const seen = place
      .read('seen')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { stop_hook_active: boolean; last_assistant_message: string })
    assert.deepEqual(
      seen.map(({ stop_hook_active, last_assistant_message }) => [stop_hook_active, last_assistant_message]),
      [
        [false, 'answer 0'],
        [true, 'answer 1'],
        [true, 'answer 2'],
      ],
    )
    assert.deepEqual(place.contexts(), Array(2).fill('A hook does not let the turn end yet:\nrun the tests'))
    assert.deepEqual(place.ofType('turn/end')[0]?.data.reason, { kind: 'completed' })
    assert.deepEqual(place.said(), [
      'HOOK_DECIDED: hooks kept the turn going 2 times; it ends now (maxStopRounds of the plugin "hooks")',
    ])
  },
)

test(
  'what a hook says at the start of a session is part of the first request, also where that prompt was blocked first',
  limits,
  async () => {
    await using place = await hooksPlace({
      script: [text('ok'), text('ok')],
      claude: {
        SessionStart: [
          group('cat > seen; echo "branch: main"', {}, 'startup'),
          group('touch never', {}, 'resume'),
        ],
        UserPromptSubmit: [group('test -e tried || { touch tried; echo first >&2; exit 2; }')],
      },
    })
    await place.turn('blocked')
    assert.deepEqual(place.contexts(), [])
    await place.turn('go')
    await place.turn('again')
    assert.equal((JSON.parse(place.read('seen')) as { source: string }).source, 'startup')
    assert.ok(!place.has('never'))
    assert.deepEqual(place.contexts(), [
      'Context from the hook .claude/settings.json SessionStart[0].hooks[0]:\nbranch: main',
    ])
    assert.ok(JSON.stringify(place.adapter.requests[0]?.messages).includes('branch: main'))
  },
)

test(
  'hooks that fail before a call deny it, each with its reason, unless the configuration says otherwise',
  limits,
  async () => {
    const failing: readonly (readonly [hook: string, rest: object, problem: string])[] = [
      ['exit 1', {}, 'it exited with 1'],
      ['kill -9 $$', {}, 'it exited with 137'],
      ['./missing.sh', {}, 'it exited with 127'],
      ['echo "{garbage"', {}, 'it printed broken JSON'],
      [json({ decision: 'maybe' }), {}, 'decision is "maybe"'],
      ['sleep 60', { timeout: 0.2 }, 'it did not end within 0.2 s'],
    ]
    for (const [hook, rest, problem] of failing) {
      await using place = await hooksPlace({
        script: [toolCall('look', {}), text('ok')],
        claude: { PreToolUse: [group(hook, rest)] },
      })
      await place.turn('go')
      const failed = `the hook .claude/settings.json PreToolUse[0].hooks[0] failed: ${problem}`
      assert.deepEqual(place.results(), [`Error: a hook denied the call: ${failed}`])
      assert.deepEqual(place.said(), [
        `HOOK_FAILED: ${failed}; that counts as a denial, unless the plugin "hooks" has \`onFailure: allow\``,
      ])
    }
    await using lax = await hooksPlace({
      script: [toolCall('look', {}), text('ok')],
      claude: { PreToolUse: [group('exit 1')] },
      config: { onFailure: 'allow' },
    })
    await lax.turn('go')
    assert.deepEqual(lax.results(), ['seen'])
    assert.deepEqual(lax.said(), [
      'HOOK_FAILED: the hook .claude/settings.json PreToolUse[0].hooks[0] failed: it exited with 1',
    ])
    assert.equal(lax.ofType('hook/result')[0]?.data.decision, 'failed')
  },
)

test(
  'a hook that floods, leaves children or holds its pipe is bounded in time and memory and leaves nothing',
  limits,
  async () => {
    const hostile = [
      'yes & yes >&2 & sleep 60',
      'setsid sleep 300 & setsid sh -c "sleep 300 >/dev/null 2>&1" & sleep 60',
      'sleep 300 & exit 0',
      'trap "" TERM INT HUP; while :; do sleep 1; done',
    ]
    for (const mode of ['workspace-write', 'full-access'] as const) {
      await using place = await hooksPlace({
        script: [toolCall('look', {}), text('ok')],
        mode,
        claude: { PostToolUse: hostile.map(line => group(line, { timeout: 0.5 })) },
      })
      const before = heldBytes()
      await place.turn('go')
      assert.deepEqual(place.results(), ['seen'])
      const ends = place.ofType('hook/result').map(({ data }) => [data.handlerId.at(-11), data.decision])
      assert.deepEqual(Object.fromEntries(ends), { 0: 'failed', 1: 'failed', 2: 'none', 3: 'failed' })
      // What flowed last may wait for its pipe to close.
      await until(() => heldBytes() - before < 8 * 2 ** 20)
      assert.deepEqual(survivorsOf(place), [])
    }
  },
)

/** What is kept of bytes, and not only not yet collected. */
function heldBytes(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().arrayBuffers
}

/** What a process of its own does is seen at no other time. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise(setImmediate)
}

/** What carries the mark of this service and lives. */
function survivorsOf(place: Awaited<ReturnType<typeof hooksPlace>>): readonly string[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'utf8')
        return environment.includes(`CLAUDE_PROJECT_DIR=${place.work}\0`) ? [pid] : []
      } catch {
        return []
      }
    })
}

test(
  'matching hooks run at once, the same command once, and the strongest decision counts',
  limits,
  async () => {
    // Each waits for the other: one after the other they would wait for ever.
    const meet = (own: string, other: string, exit: number) =>
      group(
        `echo run >> count; touch ${own}; until test -e ${other}; do sleep 0.01; done; echo ${own} >&2; exit ${exit}`,
      )
    await using place = await hooksPlace({
      script: [toolCall('look', {}), text('ok')],
      claude: { PreToolUse: [meet('a', 'b', 2), meet('b', 'a', 0), meet('a', 'b', 2)] },
    })
    await place.turn('go')
    assert.deepEqual(place.results(), ['Error: a hook denied the call: a'])
    assert.equal(place.read('count'), 'run\nrun\n')
  },
)

test(
  'a hook is confined as its session is, works in its folder, and a path is never part of a command',
  limits,
  async () => {
    const name = 'a $(touch pwned) `touch pwned` "b'
    await using place = await hooksPlace({
      script: [text('ok')],
      name,
      files: { '.claude/hooks/note.sh': '#!/bin/sh\npwd > where\n' },
      claude: {
        UserPromptSubmit: [group('"$CLAUDE_PROJECT_DIR/.claude/hooks/note.sh"; touch ../outside 2> denied')],
        Stop: [group('"${CLAUDE_PROJECT_DIR}/.claude/hooks/note.sh"')],
      },
      config: { onFailure: 'allow' },
    })
    await place.turn('go')
    assert.equal(place.read('where'), `${place.work}\n`)
    assert.match(place.read('denied'), /Read-only file system/)
    assert.ok(!existsSync(join(place.root, 'outside')))
    assert.ok(!place.has('pwned') && !existsSync('pwned'))

    await using reading = await hooksPlace({
      script: [text('ok')],
      mode: 'read-only',
      claude: { UserPromptSubmit: [group('touch made; true')] },
    })
    await reading.turn('go')
    assert.ok(!reading.has('made'))
  },
)

test(
  'where no sandbox works hooks run in full access, or where the configuration says so, and else fail',
  { timeout: 60_000 },
  async () => {
    const script = () => [toolCall('look', {}), text('ok')]
    const claude = { PreToolUse: [group('touch ran')] }
    await using closed = await hooksPlace({ script: script(), claude, hasSandbox: false })
    await closed.turn('go')
    assert.match(
      closed.results()[0] ?? '',
      /failed: no sandbox works here, and hooks run without one only in full-access mode or with `unconfined: true` of the plugin "hooks"$/,
    )
    assert.ok(!closed.has('ran'))
    await using named = await hooksPlace({
      script: script(),
      claude,
      hasSandbox: false,
      config: { unconfined: true },
    })
    await named.turn('go')
    assert.ok(named.has('ran'))
    await using full = await hooksPlace({ script: script(), claude, hasSandbox: false, mode: 'full-access' })
    await full.turn('go')
    assert.ok(full.has('ran'))
  },
)

test(
  'hooks of a project touch nothing before it is trusted, and what changed stays out',
  limits,
  async () => {
    const claude = { SessionStart: [group('touch pwned')], UserPromptSubmit: [group('.claude/hooks/a.sh')] }
    await using place = await hooksPlace({
      script: [text('1'), text('2'), text('3'), text('4')],
      files: { '.claude/hooks/a.sh': '#!/bin/sh\ntouch ran\n' },
      claude,
      codex: claude,
      isTrusted: false,
    })
    await place.turn('one')
    assert.ok(!place.has('pwned') && !place.has('ran'))
    assert.deepEqual(place.said(), [
      'HOOKS_NOT_TRUSTED: hooks of the project are not loaded, as this folder is not trusted: .claude/settings.json, .claude/hooks/a.sh, .codex/hooks.json; `dsh trust` shows them and asks',
    ])
    await place.trusted()
    await place.turn('two')
    // The session began before, so its beginning is over.
    assert.ok(!place.has('pwned') && place.has('ran'))
    // What was admitted stays in force; what stands there now does not count.
    place.put(
      '.claude/settings.json',
      JSON.stringify({ hooks: { UserPromptSubmit: [group('touch worse')] } }),
    )
    await place.turn('three')
    assert.ok(!place.has('worse'))
    assert.deepEqual(place.said().slice(1), [
      'HOOKS_CHANGED: hooks of the project are not loaded as they are now, for they changed since this folder was trusted: .claude/settings.json; `dsh trust` shows them and asks',
    ])
    await place.trusted()
    await place.turn('four')
    assert.ok(place.has('worse'))
  },
)

test(
  'scripts that become others in the midst of a session do not run, and what they guarded is denied',
  limits,
  async () => {
    const script = '#!/bin/sh\ntouch ran\n'
    const path = '.claude/hooks/a.sh'
    await using place = await hooksPlace({
      script: Array.from({ length: 3 }, () => [toolCall('look', {}), text('ok')]).flat(),
      files: { [path]: script },
      claude: { PreToolUse: [group(path)], Stop: [group(path)] },
    })
    await place.turn('go')
    rmSync(join(place.work, 'ran'))
    place.put(path, '#!/bin/sh\ntouch worse\n')
    await place.turn('again')
    assert.ok(!place.has('ran') && !place.has('worse'))
    const why = 'scripts beside it changed since this folder was trusted (`dsh trust`)'
    const denied = unusable('.claude/settings.json PreToolUse[0].hooks[0]', why)
    assert.deepEqual(place.results(), ['seen', `Error: a hook denied the call: ${denied}`])
    assert.deepEqual(place.said(), [
      `HOOKS_CHANGED: hooks of the project are not loaded as they are now, for they changed since this folder was trusted: ${path}; \`dsh trust\` shows them and asks`,
    ])
    place.put(path, script)
    await place.turn('as before')
    assert.ok(place.has('ran'))
    assert.equal(place.results()[2], 'seen')
  },
)

test('what a person names and is no file is not read, and denies calls', limits, async () => {
  await using place = await hooksPlace({ script: [toolCall('look', {}), text('ok')] })
  const path = join(place.root, 'pipe.json')
  execFileSync('mkfifo', [path])
  await place.plugin.dispose()
  await place.ctx.plugin(hooks, { files: [{ path, dialect: 'claude' }] })
  await place.turn('go')
  assert.deepEqual(place.results(), [`Error: a hook denied the call: ${unusable(path, 'it is no file')}`])
})

const unusable = (what: string, why: string): string =>
  `${what} cannot be used: ${why}; until it is mended or removed, what it is for is denied (\`onFailure: allow\` of the plugin "hooks" in dsh.yml switches that off)`
const noPattern = 'its matcher "(" is no pattern: Invalid regular expression: /(/: Unterminated group'
const noTime = 'its timeout is 0, not a number of seconds above 0 and at most 86400'
const noJson = `it is no JSON: Expected property name or '}' in JSON at position 1 (line 1 column 2)`

test(
  'a bad file, event, matcher or hook costs only itself where failures count for nothing',
  limits,
  async () => {
    await using place = await hooksPlace({
      script: [toolCall('look', {}), text('ok')],
      claude: {
        PreToolUse: [group('true', {}, '(')],
        SubagentStop: [group('true')],
        UserPromptSubmit: [group('touch never', { timeout: 0 }), group('touch ran')],
      },
      files: { '.dsh/hooks.json': '{' },
      config: {
        onFailure: 'allow',
        files: [
          { path: '/nowhere/hooks.json', dialect: 'claude' },
          { path: 'hooks.json', dialect: 'codex' },
        ],
      },
    })
    await place.turn('go')
    assert.ok(place.has('ran') && !place.has('never'))
    assert.deepEqual(place.results(), ['seen'])
    const left = place.said().map(line => line.replace(/^HOOK_NOT_LOADED: /, ''))
    assert.deepEqual(left, [
      "/nowhere/hooks.json is left out: ENOENT: no such file or directory, stat '/nowhere/hooks.json'",
      'hooks.json is left out: a hook file is named from / or ~/',
      '.claude/settings.json SubagentStop is left out: there is no such event here',
      `.claude/settings.json PreToolUse[0] is left out: ${noPattern}`,
      `.claude/settings.json UserPromptSubmit[0].hooks[0] is left out: ${noTime}`,
      `.dsh/hooks.json is left out: ${noJson}`,
    ])
  },
)

test(
  'a guard that cannot be used denies what it was for, says why once, and logs each time',
  limits,
  async () => {
    const cases: readonly (readonly [guard: object, where: string, why: string, others: string])[] = [
      [group('true', { timeout: 0 }, 'Bash'), 'PreToolUse[0].hooks[0]', noTime, 'seen'],
      [
        group('true', { if: 'Bash(rm *)' }, 'Bash'),
        'PreToolUse[0].hooks[0]',
        'its "if" is not supported',
        'seen',
      ],
      [group('true', {}, '('), 'PreToolUse[0]', noPattern, 'denied'],
    ]
    for (const [guard, where, why, others] of cases) {
      await using place = await hooksPlace({
        script: [
          toolCalls([
            { name: 'bash', args: command('touch made') },
            { name: 'look', args: {} },
          ]),
          text('ok'),
        ],
        claude: { PreToolUse: [guard] },
      })
      await place.turn('go')
      const reason = unusable(`.claude/settings.json ${where}`, why)
      const denied = `Error: a hook denied the call: ${reason}`
      assert.deepEqual(place.results(), [denied, others === 'denied' ? denied : others])
      assert.ok(!place.has('made'))
      assert.deepEqual(place.said(), [`HOOK_NOT_LOADED: ${reason}`])
      assert.deepEqual(
        place.ofType('hook/result').map(({ data }) => [data.decision, data.problem]),
        Array(others === 'denied' ? 2 : 1).fill(['deny', why]),
      )
    }
  },
)

test('a file that is no JSON denies calls, not prompts, until it is mended or removed', limits, async () => {
  const script = [toolCall('look', {}), text('ok'), toolCall('look', {}), text('ok')]
  await using brought = await hooksPlace({ script, files: { '.dsh/hooks.json': '{' } })
  await brought.turn('go')
  rmSync(join(brought.work, '.dsh/hooks.json'))
  await brought.turn('again')
  const broken = unusable('.dsh/hooks.json', noJson)
  const denied = `Error: a hook denied the call: ${broken}`
  assert.deepEqual(brought.said(), [
    `HOOK_NOT_LOADED: ${broken}`,
    'HOOKS_CHANGED: .dsh/hooks.json is gone, and its hooks with it',
  ])
  assert.deepEqual(brought.results(), [denied, 'seen'])

  await using own = await hooksPlace({ script })
  const path = join(own.root, 'mine.json')
  writeFileSync(path, '{')
  await own.plugin.dispose()
  await own.ctx.plugin(hooks, { files: [{ path, dialect: 'claude' }] })
  await own.turn('go')
  writeFileSync(path, '{"hooks":{}}')
  await own.turn('again')
  assert.deepEqual(own.results(), [denied.replace('.dsh/hooks.json', path), 'seen'])
})

test('a prompt that a hook was to guard is given back where that hook cannot be used', limits, async () => {
  await using place = await hooksPlace({ claude: { UserPromptSubmit: [group('true', { timeout: 0 })] } })
  await place.turn('go')
  assert.equal(place.adapter.requests.length, 0)
  const reason = unusable('.claude/settings.json UserPromptSubmit[0].hooks[0]', noTime)
  assert.deepEqual(place.said(), [
    `HOOK_NOT_LOADED: ${reason}`,
    `HOOK_DECIDED: a hook blocked the prompt: ${reason}`,
  ])
})

test(
  'hooks of Codex are told of commands in their own words, and their text is context',
  limits,
  async () => {
    await using place = await hooksPlace({
      script: [toolCall('bash', command('echo hi')), text('ok')],
      codex: {
        UserPromptSubmit: [group('cat > prompt; echo "be brief"')],
        PreToolUse: [group('cat > call', { timeoutSec: 5 }, '^Ba')],
        Notification: [group('true')],
      },
    })
    await place.turn('go')
    const prompt = place.read('prompt')
    assert.ok(prompt.endsWith('}'), 'no line break behind the payload')
    assert.deepEqual(JSON.parse(prompt), {
      session_id: 's',
      transcript_path: null,
      cwd: place.work,
      permission_mode: 'default',
      model: 'mock',
      turn_id: '1',
      hook_event_name: 'UserPromptSubmit',
      prompt: 'go',
    })
    const { tool_input, tool_name } = JSON.parse(place.read('call')) as Record<string, unknown>
    assert.deepEqual([tool_name, tool_input], ['Bash', { command: 'echo hi' }])
    assert.deepEqual(place.contexts(), [
      'Context from the hook .codex/hooks.json UserPromptSubmit[0].hooks[0]:\nbe brief',
    ])
    assert.deepEqual(place.said(), [
      'HOOK_NOT_LOADED: .codex/hooks.json Notification is left out: there is no such event here',
    ])
  },
)

test('a cancelled turn and a plugin that goes end hooks that run', limits, async () => {
  await using place = await hooksPlace({
    script: [toolCall('look', {}), toolCall('look', {})],
    claude: { PreToolUse: [group('touch began; sleep 300')] },
  })
  const one = place.turn('go')
  await until(() => place.has('began'))
  place.agent.cancel({ kind: 'user' })
  await one
  assert.deepEqual(place.ofType('turn/end')[0]?.data.reason, { kind: 'aborted', reason: { kind: 'user' } })
  assert.equal(place.ofType('hook/result')[0]?.data.decision, 'cancelled')

  rmSync(join(place.work, 'began'))
  const two = place.turn('go')
  await until(() => place.has('began'))
  await place.plugin.dispose()
  await two
  assert.equal(place.ofType('hook/result').length, 2)
  assert.match(place.results().at(-1) ?? '', /failed: it was cancelled$/)
  assert.deepEqual(survivorsOf(place), [])
})

test(
  'the end of a session is told to hooks, where its agent ends and where the program does',
  limits,
  async () => {
    const claude = { SessionEnd: [group('cat > end && mv end ended', {}, 'other')] }
    const ended = async (end: 'agent' | 'program'): Promise<boolean> => {
      await using place = await hooksPlace({ script: [text('ok')], claude })
      await place.turn('go')
      if (end === 'program') await place.ctx.dispose()
      else {
        await place.handle.dispose()
        await until(() => place.has('ended'))
      }
      if (!place.has('ended')) return false
      const { reason } = JSON.parse(place.read('ended')) as { reason: string }
      assert.equal(reason, 'other')
      return true
    }
    assert.ok(await ended('agent'))
    // A program that ends waits 2 seconds for them, in which a busy machine may start nothing.
    while (!(await ended('program')));
  },
)

test('a person that is asked is announced to hooks, and nobody waits for them', limits, async () => {
  await using place = await hooksPlace({
    script: [
      toolCall('bash', { ...command('true'), sandbox_permissions: 'network', justification: 'x' }),
      text('ok'),
    ],
    claude: { Notification: [group('cat > told.part; mv told.part told', {}, 'permission_prompt')] },
  })
  place.ctx.on('approval/request', async () => {
    await until(() => place.has('told'))
    return { outcome: 'rejected' }
  })
  await place.turn('go')
  const { message, notification_type } = JSON.parse(place.read('told')) as Record<string, unknown>
  assert.deepEqual(
    [message, notification_type],
    ['dsh needs your permission to use Bash', 'permission_prompt'],
  )
})

test('files that a person names run in every folder, with a root of their own', limits, async () => {
  await using place = await hooksPlace({ script: [text('ok'), text('ok')] })
  const path = join(place.root, 'mine.json')
  writeFileSync(
    path,
    JSON.stringify({ hooks: { UserPromptSubmit: [group('echo "$CLAUDE_PLUGIN_ROOT" > root')] } }),
  )
  await place.plugin.dispose()
  await place.ctx.plugin(hooks, { files: [{ path, dialect: 'claude', pluginRoot: '/srv/a b' }] })
  await place.turn('go')
  assert.equal(place.read('root'), '/srv/a b\n')
})
