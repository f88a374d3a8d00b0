/** How an answer ended, in our terms. `failure` is the host's own, and worth another try. */
export type WireFinish = 'stop' | 'tool-calls' | 'max-tokens' | 'filtered' | 'failure'

const known = new Map<string, WireFinish>([
  ['stop', 'stop'],
  ['eos', 'stop'],
  ['eos_token', 'stop'],
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['complete', 'stop'],
  ['completed', 'stop'],
  ['tool_calls', 'tool-calls'],
  ['tool_use', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['max_tool_calls', 'tool-calls'],
  ['length', 'max-tokens'],
  ['max_tokens', 'max-tokens'],
  ['max_output_tokens', 'max-tokens'],
  ['model_length', 'max-tokens'],
  ['model_context_window_exceeded', 'max-tokens'],
  ['content_filter', 'filtered'],
  ['safety', 'filtered'],
  ['sensitive', 'filtered'],
  ['refusal', 'filtered'],
  ['network_error', 'failure'],
  ['error', 'failure'],
  ['server_error', 'failure'],
  ['internal_error', 'failure'],
  ['upstream_error', 'failure'],
  ['model_error', 'failure'],
  ['timeout', 'failure'],
  ['overloaded', 'failure'],
  ['insufficient_system_resource', 'failure'],
  ['abort', 'failure'],
  ['aborted', 'failure'],
  ['cancelled', 'failure'],
])

/** Undefined for a word nobody knows, which is a normal end: only what is known as a failure is one. */
export function toWireFinish(reason: string): WireFinish | undefined {
  return known.get(reason.toLowerCase())
}
