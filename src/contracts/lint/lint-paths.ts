// The linter for files and folders: what the command line and continuous integration call.

import { readFile, stat } from 'node:fs/promises';
import { aborted } from '../../foundation/clock.ts';
import type { Finding, LintOptions } from './finding.ts';
import { createLinter } from './linter.ts';
import { holdsCode, sourceFiles } from './source-files.ts';

export const lintLimits = {
  /** Larger files are generated: they are skipped, and said to be. */
  fileBytesMax: 1_048_576,
  /** The run ends here: somebody who has that many will not read more at once. */
  findingsMax: 10_000,
} as const;

export interface LintPathsOptions extends LintOptions {
  readonly signal?: AbortSignal;
  /** Told before each file. */
  readonly onProgress?: (progress: LintProgress) => void;
}

export interface LintProgress {
  readonly file: string;
  readonly files: number;
  readonly findings: number;
}

export interface LintReport {
  readonly findings: readonly Finding[];
  /** How many files were read. */
  readonly files: number;
  readonly skipped: readonly { readonly file: string; readonly reason: string }[];
  /** Whether the run ended early, at `lintLimits.findingsMax`. */
  readonly truncated: boolean;
}

/**
 * Lints every TypeScript and JavaScript file below the paths, except in `node_modules`, `dist` and
 * `.git`. One file at a time is in memory. A path that does not exist throws `USAGE`.
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
  const linter = await createLinter(options);
  const findings: Finding[] = [];
  const skipped: { readonly file: string; readonly reason: string }[] = [];
  let files = 0;
  for await (const file of sourceFiles(paths)) {
    if (signal?.aborted === true) throw aborted(signal);
    onProgress?.({ file, files, findings: findings.length });
    const source = await readSource(file);
    if ('skip' in source) {
      skipped.push({ file, reason: source.skip });
      continue;
    }
    files += 1;
    findings.push(...linter.lint(file, source.text));
    if (findings.length >= lintLimits.findingsMax) break;
  }
  const truncated = findings.length >= lintLimits.findingsMax;
  return { findings: findings.slice(0, lintLimits.findingsMax), files, skipped, truncated };
}

async function readSource(
  file: string,
): Promise<{ readonly text: string } | { readonly skip: string }> {
  if (!holdsCode(file)) return { skip: 'not TypeScript or JavaScript' };
  const { size } = await stat(file);
  if (size > lintLimits.fileBytesMax) {
    return { skip: `larger than ${lintLimits.fileBytesMax} bytes` };
  }
  const text = await readFile(file, 'utf8');
  // MPEG transport streams are called .ts as well.
  return text.includes('\0') ? { skip: 'not text' } : { text };
}
