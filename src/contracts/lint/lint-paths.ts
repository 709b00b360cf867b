// The linter for files and folders.

import { glob, readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { aborted } from '../../foundation/clock.ts';
import { MillraceError } from '../../foundation/error.ts';
import type { Finding, LintOptions } from './finding.ts';
import { lintSource } from './lint-source.ts';

export const lintLimits = {
  /** Larger files are usually generated: they are skipped and listed in the report. */
  fileBytesMax: 1_048_576,
  /** The run stops here. */
  findingsMax: 10_000,
} as const;

const codeFile = /\.(?:[cm]?[jt]s|[jt]sx)$/;
const codeFiles = '**/*.{ts,tsx,mts,cts,js,jsx,mjs,cjs}';
const skippedFolders = new Set(['node_modules', 'dist']);

export interface LintPathsOptions extends LintOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called before each file. */
  readonly onProgress?: ((progress: LintProgress) => void) | undefined;
}

export interface LintProgress {
  readonly file: string;
  readonly files: number;
  readonly findings: number;
}

export interface LintReport {
  readonly findings: readonly Finding[];
  /** The number of linted files. */
  readonly files: number;
  readonly skipped: readonly { readonly file: string; readonly reason: string }[];
  /** Whether the run stopped at `lintLimits.findingsMax`. */
  readonly truncated: boolean;
}

/**
 * Lints the TypeScript and JavaScript files below the paths, except in `node_modules`, `dist` and folders
 * whose name starts with a dot. A path that does not exist throws `USAGE`.
 *
 * @example
 * import { lintPaths } from 'millrace/contracts';
 *
 * const { findings, files } = await lintPaths(['src']);
 * for (const { file, line, column, reason } of findings) {
 *   console.log(`${file}:${line}:${column} ${reason}`);
 * }
 */
export async function lintPaths(
  paths: readonly string[],
  options: LintPathsOptions = {},
): Promise<LintReport> {
  const { signal, onProgress } = options;
  const findings: Finding[] = [];
  const skipped: { readonly file: string; readonly reason: string }[] = [];
  let files = 0;
  for (const file of await sourceFiles(paths)) {
    if (signal?.aborted === true) throw aborted(signal);
    onProgress?.({ file, files, findings: findings.length });
    const source = await readSource(file);
    if ('skip' in source) {
      skipped.push({ file, reason: source.skip });
      continue;
    }
    files += 1;
    findings.push(...(await lintSource(file, source.text, options)));
    if (findings.length >= lintLimits.findingsMax) break;
  }
  const truncated = findings.length >= lintLimits.findingsMax;
  return { findings: findings.slice(0, lintLimits.findingsMax), files, skipped, truncated };
}

/** The given files, and the code files below the given folders in alphabetical order. */
async function sourceFiles(paths: readonly string[]): Promise<ReadonlySet<string>> {
  const files = new Set<string>();
  const exclude = (path: string): boolean => skippedFolders.has(basename(path));
  for (const path of paths) {
    const found = await stat(path).catch((cause: unknown) => {
      throw new MillraceError('USAGE', `no file or folder '${path}'`, { cause });
    });
    if (!found.isDirectory()) files.add(path);
    else {
      const below = await Array.fromAsync(glob(codeFiles, { cwd: path, exclude }));
      for (const file of below.toSorted()) files.add(join(path, file));
    }
  }
  return files;
}

async function readSource(
  file: string,
): Promise<{ readonly text: string } | { readonly skip: string }> {
  if (!codeFile.test(file)) return { skip: 'not TypeScript or JavaScript' };
  const { size } = await stat(file);
  if (size > lintLimits.fileBytesMax) {
    return { skip: `larger than ${lintLimits.fileBytesMax} bytes` };
  }
  const text = await readFile(file, 'utf8');
  // MPEG transport streams have the extension .ts, too.
  return text.includes('\0') ? { skip: 'not text' } : { text };
}
