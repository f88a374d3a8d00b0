// Read top to bottom: each layer may use the layers above it.
const src = '^packages/harness/src'
const test = '\\.test\\.ts$'
const floors = [
  ['llm', 'scope'],
  ['session', 'tools'],
  ['prompt', 'agent'],
  ['loop', 'commands'],
  ['invariants'],
]
const ban = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to })
const folders = names => `${src}/core/(${names.join('|')})/`

export default {
  forbidden: [
    // Types of one folder may know each other; code may not go in circles.
    ban(
      'no-cycles',
      'Split the shared part out.',
      {},
      { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    ),
    ban(
      'protocol-is-bottom',
      'The protocol is plain zod.',
      { path: '^packages/protocol/src/', pathNot: test },
      { pathNot: ['^packages/protocol/src/', 'node_modules/zod/'] },
    ),
    ban(
      'kernel-is-bottom',
      'The kernel knows nothing about agents.',
      { path: `${src}/kernel/` },
      { path: '^packages/', pathNot: `${src}/kernel/` },
    ),
    ...floors
      .slice(1)
      .map((_, below) =>
        ban(
          `core-floor-${below}`,
          'A lower floor declares an open interface, the upper one merges its field in.',
          { path: folders(floors[below]), pathNot: test },
          { path: folders(floors.slice(below + 1).flat()) },
        ),
      ),
    ban(
      'core-below-plugins',
      'The loop must run with any subset of plugins.',
      { path: `${src}/core/`, pathNot: test },
      { path: `${src}/(plugins|servers|presets)/` },
    ),
    ban(
      'plugins-below-servers',
      'A capability does not know who serves it.',
      { path: `${src}/plugins/`, pathNot: test },
      { path: `${src}/servers/` },
    ),
    ban(
      'plugin-front-door',
      "Use another plugin's index.ts or events.ts.",
      { path: `${src}/(?:plugins/([^/]+)|servers|presets|testing)/` },
      { path: `${src}/plugins/`, pathNot: `${src}/plugins/($1/|[^/]+/(index|events)\\.ts$)` },
    ),
    ban(
      'core-front-door',
      'Use the folder index of a core module.',
      { path: `${src}/(core/[^/]+|plugins|servers|presets|testing)/` },
      { path: `${src}/core/[^/]+/`, pathNot: [`${src}/core/[^/]+/(index|events)\\.ts$`, `${src}/$1/`] },
    ),
    ban(
      'presets-on-top',
      'Only apps and tests may assemble.',
      { path: `${src}/(?!presets/)`, pathNot: test },
      { path: `${src}/presets/` },
    ),
    ban(
      'events-are-contracts',
      'events.ts must load in a browser.',
      { path: '/events\\.ts$', pathNot: `${src}/kernel/` },
      { pathNot: ['/events\\.ts$', '^packages/protocol/src/', 'node_modules/zod/'] },
    ),
    ban(
      'package-front-door',
      'Import another package by its name.',
      { path: '^packages/([^/]+)/' },
      {
        path: '^packages/',
        pathNot: '^packages/$1/',
        dependencyTypes: ['local'],
        dependencyTypesNot: ['aliased-workspace'],
      },
    ),
    ban(
      'web-is-remote',
      'The web client talks over the wire.',
      { path: '^packages/(web|sdk)/' },
      { path: `${src}/`, pathNot: '/events\\.ts$' },
    ),
    ban(
      'browser-safe',
      'No Node built-ins here.',
      { path: '^packages/(web|sdk|protocol)/', pathNot: test },
      { dependencyTypes: ['core'] },
    ),
    ban(
      'no-orphans',
      'Delete it or use it.',
      { orphan: true, pathNot: ['\\.d\\.ts$', '\\.config\\.ts$'] },
      {},
    ),
    ban(
      'undeclared',
      'Add it to package.json.',
      {},
      { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'unknown'] },
    ),
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    combinedDependencies: true,
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(packages/[^/]+|\\.)/dist/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['dsh-source', 'import', 'node', 'default'],
    },
  },
}
