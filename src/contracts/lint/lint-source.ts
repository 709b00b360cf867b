// The linter for one source text: parse it, check its strings, apply suppressions.

import { loadDriver } from '../../foundation/load-driver.ts';
import {
  lintRules,
  type Finding,
  type LintOptions,
  type LintRule,
  type Report,
} from './finding.ts';
import { nameRules } from './name-rules.ts';
import { sourceTexts, type SourceText } from './source-text.ts';
import { applySuppressions } from './suppressions.ts';

const rootsDefault = ['gbe'];
const shownCharsMax = 120;

/**
 * Finds invalid and hand-built event types, streams, subscriptions, keys, subjects and queue names in
 * TypeScript or JavaScript; the file extension selects the dialect. Needs the package `oxc-parser`.
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
  const { parseSync, visitorKeys } = await loadDriver('oxc-parser', () => import('oxc-parser'));
  const { rules, roots = rootsDefault } = options;
  const isOn = (rule: LintRule): boolean => rules?.includes(rule) ?? true;
  // Offsets of the parser and columns of editors do not count the byte order mark.
  const source = text.replace(/^\uFEFF/, '');
  const locationAt = locationsOf(source);
  const lineAt = (offset: number): number => locationAt(offset).line;

  const { program, comments, errors } = parseSync(file, source, { preserveParens: false });
  const [error] = errors;
  const reports =
    error === undefined
      ? applySuppressions(
          sourceTexts(program, source, visitorKeys).flatMap(nameReports),
          comments,
          lineAt,
          isOn,
        )
      : [syntaxReport(error)];
  return reports
    .filter(({ rule }) => isOn(rule))
    .toSorted((a, b) => a.start - b.start || a.end - b.end)
    .map(toFinding);

  function nameReports(name: SourceText): readonly Report[] {
    for (const check of nameRules) {
      const problem = check(name, roots);
      if (problem !== undefined && isOn(problem.rule)) {
        return [{ ...problem, start: name.start, end: name.end }];
      }
    }
    return [];
  }

  function toFinding({ rule, severity, start, end, reason, suggestion }: Report): Finding {
    const code = source.slice(start, end);
    return {
      rule,
      severity: severity ?? lintRules[rule].severity,
      file,
      ...locationAt(start),
      start,
      end,
      text: code.length > shownCharsMax ? `${code.slice(0, shownCharsMax)}…` : code,
      reason,
      suggestion,
    };
  }
}

function syntaxReport(error: {
  readonly message: string;
  readonly labels: readonly { readonly start: number; readonly end: number }[];
}): Report {
  const { start, end } = error.labels[0] ?? { start: 0, end: 0 };
  return { rule: 'syntax', start, end, reason: `the file does not parse: ${error.message}` };
}

/** Offset → line and column, both from 1. */
function locationsOf(source: string): (offset: number) => { line: number; column: number } {
  const lineStarts = [0];
  for (const { index, 0: lineEnd } of source.matchAll(/\r\n|[\n\r\u2028\u2029]/g)) {
    lineStarts.push(index + lineEnd.length);
  }
  return (offset) => {
    const line = lineStarts.findLastIndex((start) => start <= offset);
    return { line: line + 1, column: offset - (lineStarts[line] ?? 0) + 1 };
  };
}
