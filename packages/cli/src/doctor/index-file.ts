import { join } from 'node:path'
import { examineIndex } from '@dsh/harness/plugins/session-query'
import type { IndexState } from '@dsh/harness/plugins/session-query'
import { quoted } from '../errors.ts'
import { note, ok, problem } from './finding.ts'
import type { Findings, Place } from './finding.ts'

/** The file behind lists and searches. It follows from the logs. */
export async function lookAtIndex({ home }: Place): Promise<Findings> {
  const path = join(home, 'cache', 'index.sqlite')
  return [judgeIndex(await examineIndex(path), path)]
}

function judgeIndex(state: IndexState, path: string): Findings[number] {
  const anew = 'the next list or search makes it anew'
  switch (state) {
    case 'sound':
      return ok('the index of sessions can be used')
    case 'absent':
      return ok('no index of sessions yet; the first list or search makes it')
    case 'other version':
      return note('INDEX_OTHER_VERSION', `${path} is of another version; ${anew}`)
    case 'cut short':
      return note('INDEX_CUT_SHORT', `${path} is cut short; ${anew}`)
    case 'no database':
      return note('INDEX_NO_DATABASE', `${path} is no database; ${anew}, and moves this aside`)
    case 'foreign':
      return problem(
        'INDEX_FOREIGN',
        `${path} is the database of another program: nothing is searched`,
        `mv ${quoted(path)} ${quoted(`${path}.foreign`)}`,
      )
  }
}
