import type { LlmResolvedModelInfo } from '../../core/llm/index.ts'
import type { ModelFacts } from './catalog.ts'

const effortNames: Readonly<Record<string, string>> = {
  none: 'Off',
  minimal: 'Minimal',
  low: 'Low',
  medium: 'Medium',
  high: 'High',
  xhigh: 'Extra high',
  max: 'Maximum',
  ultra: 'Ultra',
}

export function toModelInfo(provider: string, model: string, facts: ModelFacts): LlmResolvedModelInfo {
  const { name = model, description, images, contextWindow, defaultMaxTokens, efforts, defaultEffort } = facts
  const notes = facts.effortNotes ?? {}
  return {
    provider,
    id: model,
    name,
    ...(description === undefined ? {} : { description }),
    ...(images === undefined ? {} : { inputModalities: images ? ['text', 'image'] : ['text'] }),
    ...(contextWindow === undefined ? {} : { context: { contextWindow } }),
    ...(defaultMaxTokens === undefined ? {} : { defaultMaxTokens }),
    ...(efforts === undefined || efforts.length === 0
      ? {}
      : {
          reasoning: {
            efforts: efforts.map(id => ({
              id,
              name: effortNames[id] ?? id,
              ...(notes[id] === undefined ? {} : { description: notes[id] }),
            })),
            ...(defaultEffort === undefined ? {} : { defaultEffort }),
          },
        }),
  }
}
