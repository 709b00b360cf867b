// `// millrace-lint-disable-next-line <rule> -- reason`: an exception, with its reason beside it;
// `millrace-lint-disable-file` is for the modules that builders are made of, and for tests of bad names.

import { isLintRule, type LintRule, type Report } from './finding.ts';

const directive = /^\s*millrace-lint-disable-(next-line|file)(?:\s+(.*))?$/s;

export interface Comment {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

interface Suppression extends Comment {
  readonly rules: readonly LintRule[];
  /** The line that it speaks for; absent for all of them. */
  readonly line: number | undefined;
  readonly used: Set<LintRule>;
}

/** Takes the suppressed reports out, and reports suppressions that are wrong or not needed. */
export function applySuppressions(
  reports: readonly Report[],
  comments: readonly Comment[],
  lineAt: (offset: number) => number,
  isOn: (rule: LintRule) => boolean,
): readonly Report[] {
  const complaints: Report[] = [];
  const suppressions: Suppression[] = [];
  for (const comment of comments) {
    const text = directive.exec(comment.value);
    if (text === null) continue;
    const read = readDirective(text[2] ?? '');
    if (typeof read === 'string') complaints.push(complaint(comment, read));
    else {
      const line = text[1] === 'file' ? undefined : lineAt(comment.end) + 1;
      suppressions.push({ ...comment, rules: read, line, used: new Set() });
    }
  }
  const kept = reports.filter((report) => {
    const line = lineAt(report.start);
    const match = suppressions.find(
      (it) => (it.line ?? line) === line && it.rules.includes(report.rule),
    );
    match?.used.add(report.rule);
    return match === undefined;
  });
  for (const suppression of suppressions) {
    for (const rule of suppression.rules) {
      // A rule that does not run cannot show that its suppression is needed.
      if (suppression.used.has(rule) || !isOn(rule)) continue;
      complaints.push({
        ...complaint(suppression, `nothing breaks ${rule} here: remove the suppression`),
        severity: 'warning',
      });
    }
  }
  return [...kept, ...complaints];
}

/** The rules, or what is wrong with the directive. */
function readDirective(text: string): readonly LintRule[] | string {
  const [names = '', ...reason] = text.split(/(?:^|\s)--(?:\s|$)/);
  const rules = names.split(/[\s,]+/).filter((name) => name !== '');
  const unknown = rules.find((rule) => !isLintRule(rule));
  if (unknown !== undefined) return `there is no rule '${unknown}'`;
  if (reason.join('').trim() === '') return `a suppression needs its reason: … <rule> -- <reason>`;
  if (rules.length === 0) return `a suppression names its rule: … <rule> -- <reason>`;
  return rules.filter(isLintRule);
}

function complaint({ start, end }: Comment, reason: string): Report {
  return { rule: 'suppression', start, end, reason };
}
