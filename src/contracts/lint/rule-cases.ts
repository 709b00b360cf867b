// For the tests of the rules: what a finding must say, and that its suggestion really mends the code.

import assert from 'node:assert/strict';
import type { Finding, LintOptions, LintRule } from './finding.ts';
import { lintSource } from './lint-source.ts';

export interface BadCode {
  readonly code: string;
  /** The part of the code that the finding points at; all of it unless told. */
  readonly at?: string;
  readonly reason: RegExp;
  /** Absent where the linter must not make one up. */
  readonly suggestion?: string;
}

/** Asserts that exactly one finding of the rule is made, in its place, and that its mend is clean. */
export async function assertFound(
  rule: LintRule,
  { code, at = code, reason, suggestion }: BadCode,
  options: LintOptions = {},
): Promise<void> {
  // The second line proves that positions are not those of the first by accident.
  const source = `// before\nuse(0, ${code});\n`;
  const findings = await lintSource('case.tsx', source, options);
  assert.equal(findings.length, 1, `${code}: ${JSON.stringify(findings, null, 2)}`);
  const [finding] = findings as [Finding];
  assert.equal(finding.rule, rule, code);
  assert.match(finding.reason, reason);
  assert.equal(finding.suggestion, suggestion, code);
  assert.equal(source.slice(finding.start, finding.end), at);
  assert.equal(finding.line, 2);
  assert.equal(finding.column, finding.start - source.indexOf('\n'));
  if (suggestion !== undefined) {
    const mended = applySuggestions(source, findings);
    assert.deepEqual(await lintSource('case.tsx', mended, options), [], mended);
  }
}

/** Asserts that there is nothing to say about the code. */
export async function assertClean(code: string, options: LintOptions = {}): Promise<void> {
  assert.deepEqual(await lintSource('case.tsx', code, options), [], code);
}

/** Puts every suggestion in its place, from the end, so that offsets stay right. */
export function applySuggestions(source: string, findings: readonly Finding[]): string {
  return findings.toReversed().reduce((text, { start, end, suggestion }) => {
    return suggestion === undefined ? text : text.slice(0, start) + suggestion + text.slice(end);
  }, source);
}
