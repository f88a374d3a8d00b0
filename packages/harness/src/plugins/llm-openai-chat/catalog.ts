import type { Quirks } from './quirks.ts'

/** What is known of a model without asking its host. */
export interface ModelFacts {
  readonly name?: string
  readonly description?: string
  /** Tokens, input and output together. */
  readonly contextWindow?: number
  /** Tokens of one answer at most. */
  readonly maxOutput?: number
  /** Sent where the caller names no limit. */
  readonly defaultMaxTokens?: number
  /** Absent = unknown. */
  readonly images?: boolean
  /** Words for how much the model thinks; `none` turns it off. */
  readonly efforts?: readonly string[]
  readonly defaultEffort?: string
  /** What the host makes of a word, where that is not plain. */
  readonly effortNotes?: Readonly<Record<string, string>>
  readonly quirks?: Partial<Quirks>
  readonly price?: ModelPrice
  /** Other names under which the host answers as this model. */
  readonly aliases?: readonly string[]
}

/** Money per million tokens. */
export interface ModelPrice {
  readonly currency: 'CNY' | 'USD'
  readonly cacheRead: number
  readonly input: number
  /** Absent = as input. */
  readonly cacheWrite?: number | undefined
  readonly output: number
  /** Hours at which the price is another one, in the zone's own time. */
  readonly peak?: PeakHours
}

export interface PeakHours {
  readonly factor: number
  readonly timeZone: string
  /** From and to, in hours; the end does not belong to it. */
  readonly hours: readonly (readonly [from: number, to: number])[]
  /** 0 = Sunday. */
  readonly days: readonly number[]
}

/** A host that is known by name. Every field may be overridden in the plugin's config. */
export interface ProviderFacts {
  readonly name: string
  /** The base to which `/chat/completions` is added. */
  readonly baseURL: string
  /** A variable that overrides the base. */
  readonly baseURLEnv?: string
  /** The variable that holds the key; the first that is set wins. */
  readonly apiKeyEnv?: readonly string[]
  /** A host of one's own, which asks for no key. */
  readonly keyOptional?: boolean
  readonly idleTimeoutMs?: number
  readonly quirks?: Partial<Quirks>
  readonly models?: Readonly<Record<string, ModelFacts>>
  /** Facts of models that are not listed. */
  readonly otherModels?: ModelFacts
  readonly defaultModel?: string
  /** Where a person finds the keys, and where an empty account is filled. */
  readonly keysURL?: string
  readonly topUpURL?: string
}

const deepseekPeak: PeakHours = {
  factor: 2,
  timeZone: 'Asia/Shanghai',
  hours: [
    [9, 12],
    [14, 18],
  ],
  days: [1, 2, 3, 4, 5],
}

/** What DeepSeek takes: the words it has, then those it maps to them. */
const deepseekEfforts = ['none', 'low', 'high', 'max', 'minimal', 'medium', 'xhigh', 'ultra']

const deepseekThinking = {
  efforts: deepseekEfforts,
  defaultEffort: 'high',
  effortNotes: {
    minimal: 'taken as low',
    medium: 'taken as high',
    xhigh: 'taken as high',
    ultra: 'taken as max',
  },
}

const deepseekModel = { ...deepseekThinking, contextWindow: 1_000_000, maxOutput: 384_000 }

const effortWords = ['minimal', 'low', 'medium', 'high']
const localIdleMs = 600_000

/** The hosts that are known by name, by id of their route. */
export const providerCatalog: Readonly<Record<string, ProviderFacts>> = {
  deepseek: {
    name: 'DeepSeek',
    baseURL: 'https://api.deepseek.com',
    baseURLEnv: 'DEEPSEEK_BASE_URL',
    apiKeyEnv: ['DEEPSEEK_API_KEY'],
    keysURL: 'https://platform.deepseek.com/api_keys',
    topUpURL: 'https://platform.deepseek.com/top_up',
    defaultModel: 'deepseek-flash',
    otherModels: deepseekThinking,
    quirks: {
      reasoningReplay: 'with-tool-calls',
      thinkingStyle: 'deepseek',
      forcedToolWhileThinking: false,
      temperature: 'not-while-thinking',
      emptyContent: null,
    },
    models: {
      'deepseek-flash': {
        ...deepseekModel,
        name: 'DeepSeek Flash',
        images: true,
        aliases: ['deepseek-v4-flash', 'deepseek-v4-flash-vision-exp'],
        price: { currency: 'CNY', cacheRead: 0.02, input: 1, output: 4, peak: deepseekPeak },
      },
      'deepseek-v4-pro': {
        ...deepseekModel,
        name: 'DeepSeek V4 Pro',
        images: false,
        price: { currency: 'CNY', cacheRead: 0.15, input: 4.5, output: 13.5, peak: deepseekPeak },
      },
    },
  },
  openai: {
    name: 'OpenAI',
    baseURL: 'https://api.openai.com/v1',
    baseURLEnv: 'OPENAI_BASE_URL',
    apiKeyEnv: ['OPENAI_API_KEY'],
    keysURL: 'https://platform.openai.com/api-keys',
    topUpURL: 'https://platform.openai.com/settings/organization/billing',
    defaultModel: 'gpt-5',
    quirks: {
      systemRole: 'developer',
      maxTokensField: 'max_completion_tokens',
      emptyContent: null,
      maxCallIdLength: 40,
    },
    models: {
      'gpt-5': {
        name: 'GPT-5',
        contextWindow: 400_000,
        maxOutput: 128_000,
        images: true,
        efforts: effortWords,
        quirks: { temperature: 'never' },
        price: { currency: 'USD', cacheRead: 0.125, input: 1.25, output: 10 },
      },
      'gpt-5-mini': {
        name: 'GPT-5 mini',
        contextWindow: 400_000,
        maxOutput: 128_000,
        images: true,
        efforts: effortWords,
        quirks: { temperature: 'never' },
        price: { currency: 'USD', cacheRead: 0.025, input: 0.25, output: 2 },
      },
    },
  },
  openrouter: {
    name: 'OpenRouter',
    baseURL: 'https://openrouter.ai/api/v1',
    apiKeyEnv: ['OPENROUTER_API_KEY'],
    keysURL: 'https://openrouter.ai/settings/keys',
    topUpURL: 'https://openrouter.ai/settings/credits',
    defaultModel: 'openrouter/auto',
    otherModels: { efforts: ['none', ...effortWords, 'xhigh'] },
    quirks: { thinkingStyle: 'object', reasoningReplayField: 'reasoning' },
  },
  qwen: {
    name: 'Qwen (DashScope)',
    baseURL: 'https://dashscope.aliyuncs.com/compatible-mode/v1',
    baseURLEnv: 'DASHSCOPE_BASE_URL',
    apiKeyEnv: ['DASHSCOPE_API_KEY'],
    keysURL: 'https://bailian.console.aliyun.com',
    defaultModel: 'qwen3.8-max',
    otherModels: { efforts: ['none', 'high'] },
    quirks: { thinkingStyle: 'enable-thinking', forcedToolWhileThinking: false },
    models: { 'qwen3.8-max': { name: 'Qwen3.8 Max', efforts: ['none', 'high'] } },
  },
  kimi: {
    name: 'Kimi (Moonshot)',
    baseURL: 'https://api.moonshot.cn/v1',
    baseURLEnv: 'MOONSHOT_BASE_URL',
    apiKeyEnv: ['MOONSHOT_API_KEY', 'KIMI_API_KEY'],
    keysURL: 'https://platform.moonshot.cn/console/api-keys',
    topUpURL: 'https://platform.moonshot.cn/console/pay',
    defaultModel: 'kimi-k3',
    quirks: {
      reasoningReplay: 'with-tool-calls',
      maxTokensField: 'max_completion_tokens',
      forcedToolWhileThinking: false,
      temperature: 'never',
      thinkingStyle: 'switch',
    },
    models: {
      'kimi-k3': {
        name: 'Kimi K3',
        efforts: ['low', 'high', 'max'],
        quirks: { thinkingStyle: 'effort' },
      },
      'kimi-k2.6': { name: 'Kimi K2.6', contextWindow: 262_144, efforts: ['none', 'high'] },
    },
  },
  glm: {
    name: 'GLM (Zhipu)',
    baseURL: 'https://open.bigmodel.cn/api/paas/v4',
    baseURLEnv: 'ZHIPUAI_BASE_URL',
    apiKeyEnv: ['ZHIPUAI_API_KEY', 'GLM_API_KEY', 'ZAI_API_KEY'],
    keysURL: 'https://open.bigmodel.cn/usercenter/apikeys',
    defaultModel: 'glm-5.2',
    otherModels: { efforts: ['none', 'high'] },
    quirks: {
      reasoningReplay: 'with-tool-calls',
      thinkingStyle: 'switch',
      streamUsage: false,
      forcedToolWhileThinking: false,
    },
    models: {
      'glm-5.2': { name: 'GLM-5.2', contextWindow: 200_000, maxOutput: 128_000, efforts: ['none', 'high'] },
    },
  },
  ollama: {
    name: 'Ollama',
    baseURL: 'http://127.0.0.1:11434/v1',
    baseURLEnv: 'OLLAMA_BASE_URL',
    apiKeyEnv: ['OLLAMA_API_KEY'],
    keyOptional: true,
    idleTimeoutMs: localIdleMs,
  },
  vllm: {
    name: 'vLLM',
    baseURL: 'http://127.0.0.1:8000/v1',
    baseURLEnv: 'VLLM_BASE_URL',
    apiKeyEnv: ['VLLM_API_KEY'],
    keyOptional: true,
    idleTimeoutMs: localIdleMs,
  },
  'llama.cpp': {
    name: 'llama.cpp',
    baseURL: 'http://127.0.0.1:8080/v1',
    baseURLEnv: 'LLAMA_CPP_BASE_URL',
    apiKeyEnv: ['LLAMA_CPP_API_KEY'],
    keyOptional: true,
    idleTimeoutMs: localIdleMs,
  },
}
