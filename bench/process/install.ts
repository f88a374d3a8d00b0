import { execFileSync } from 'node:child_process'
import { globSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export interface InstallFacts {
  readonly packages: number
  readonly megabytes: number
  /** Packages that run something when they are installed. */
  readonly scripts: readonly string[]
}

const repo = join(import.meta.dirname, '../..')

/** Builds and packs the command, and installs the tarball into the empty `folder`. */
export function installPacked(folder: string): void {
  mkdirSync(folder, { recursive: true })
  const npm = (args: readonly string[], cwd: string): void => {
    execFileSync('npm', [...args, '--silent'], { cwd, stdio: ['ignore', 'ignore', 'inherit'] })
  }
  npm(['run', 'build'], repo)
  npm(['pack', '--workspace=packages/cli', '--pack-destination', folder], repo)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true }))
  const tarballs = globSync('*.tgz', { cwd: folder }).map(file => `./${file}`)
  npm(['install', '--no-audit', '--no-fund', '--prefer-offline', ...tarballs], folder)
}

export function installFacts(folder: string): InstallFacts {
  const modules = join(folder, 'node_modules')
  const manifests = globSync('**/package.json', { cwd: modules }).filter(isPackageRoot)
  const files = globSync('**', { cwd: modules, withFileTypes: true }).filter(entry => entry.isFile())
  const bytes = files.reduce((sum, file) => sum + lstatSync(join(file.parentPath, file.name)).size, 0)
  return {
    packages: manifests.length,
    megabytes: bytes / 1e6,
    scripts: manifests.filter(manifest => runsAtInstall(join(modules, manifest))),
  }
}

/** Folders inside a package may have manifests too; they are no packages. */
function isPackageRoot(manifest: string): boolean {
  return /(^|node_modules\/)(@[^/]+\/)?[^/@]+\/package\.json$/.test(manifest) && !manifest.startsWith('.')
}

function runsAtInstall(manifest: string): boolean {
  const { scripts = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as {
    readonly scripts?: Readonly<Record<string, string>>
  }
  return ['preinstall', 'install', 'postinstall'].some(name => name in scripts)
}
