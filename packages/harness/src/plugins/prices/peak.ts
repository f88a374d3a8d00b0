import type { PeakHours } from '../llm-openai-chat/index.ts'

const weekdays = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat']
const formats = new Map<string, Intl.DateTimeFormat>()

/** Whether the hours of the higher price are on, on the clocks of their zone. */
export function isPeak({ timeZone, hours, days }: PeakHours, when: number): boolean {
  const parts = new Map(
    formatOf(timeZone)
      .formatToParts(when)
      .map(({ type, value }) => [type, value]),
  )
  const hour = Number(parts.get('hour')) + Number(parts.get('minute')) / 60
  const day = weekdays.indexOf(parts.get('weekday') ?? '')
  return days.includes(day) && hours.some(([from, to]) => from <= hour && hour < to)
}

/** Making one takes longer than a hundred uses. */
function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone)
  if (known !== undefined) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone,
    weekday: 'short',
    hour: 'numeric',
    minute: 'numeric',
    hourCycle: 'h23',
  })
  formats.set(timeZone, format)
  return format
}
