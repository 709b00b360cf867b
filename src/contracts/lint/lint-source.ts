// The linter for one text: what editors and tests call.

import type { Finding, LintOptions } from './finding.ts';
import { createLinter } from './linter.ts';

/**
 * Finds event types, streams, keys, subjects and queue names in TypeScript or JavaScript that break
 * the grammar, or that are put together past the builders. Needs the package `oxc-parser`; the
 * file's extension tells the dialect.
 *
 * @example
 * import { lintSource } from 'millrace/contracts';
 *
 * const findings = await lintSource('pay.ts', "defineEvent('Payment.Completed.v1', schema);");
 * console.log(findings[0]?.suggestion); // 'payment.completed.v1'
 */
export async function lintSource(
  file: string,
  text: string,
  options: LintOptions = {},
): Promise<readonly Finding[]> {
  const linter = await createLinter(options);
  return linter.lint(file, text);
}
