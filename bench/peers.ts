// The peers: packages of `bench/package.json`, installed when a benchmark first needs them, so that
// installing the product stays small.

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const folder = new URL('./', import.meta.url);
const modules = new URL('node_modules/', folder);
const stamp = new URL('.millrace-lock', modules);

/** Installs the packages of the lock file, unless they are installed. */
export async function ensurePeers(options: {
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}): Promise<void> {
  const lock = await readFile(new URL('package-lock.json', folder));
  const wanted = createHash('sha256').update(lock).digest('hex');
  if ((await readIfThere(stamp)) === wanted) return;
  options.say('installing the peers of bench/ (npm ci)…');
  const flags = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
  // Uses the same npm that runs this process.
  const npm = process.env['npm_execpath'];
  const child =
    npm === undefined
      ? spawn('npm', flags, {
          ...spawnOptions(options.signal),
          shell: process.platform === 'win32',
        })
      : spawn(process.execPath, [npm, ...flags], spawnOptions(options.signal));
  const [code] = (await once(child, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`npm ci in bench/ failed (exit ${String(code)})`);
  await writeFile(stamp, wanted);
}

/**
 * Loads a peer, or one of its files, from `bench/node_modules`. The types of a peer may not be installed when
 * the repository is checked, so declare the part that the benchmark uses.
 *
 * @example
 * interface Zod { string(): { safeParse(value: unknown): { success: boolean } } }
 * const { z } = await importPeer<{ z: Zod }>('zod');
 */
export async function importPeer<T>(specifier: string): Promise<T> {
  const url = import.meta.resolve(specifier);
  // The repository itself has some of these packages for its tests, possibly in other versions.
  if (!url.startsWith(modules.href)) {
    throw new Error(`'${specifier}' is not installed in bench/: add it to bench/package.json`);
  }
  return (await import(url)) as T;
}

export async function peerVersion(name: string): Promise<string> {
  const text = await readFile(new URL(`${name}/package.json`, modules), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}

function spawnOptions(signal: AbortSignal): {
  cwd: string;
  signal: AbortSignal;
  stdio: ['ignore', 'ignore', 'inherit'];
} {
  // With --json, standard output contains only the result.
  return { cwd: fileURLToPath(folder), signal, stdio: ['ignore', 'ignore', 'inherit'] };
}

async function readIfThere(file: URL): Promise<string | undefined> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
