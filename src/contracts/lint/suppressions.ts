// Suppression comments: `// millrace-lint-disable-next-line <rule> -- <reason>` applies to the next line,
// `// millrace-lint-disable-file <rule> -- <reason>` to the file.

import { isLintRule, type LintRule, type Report } from './finding.ts';

const directive = /^\s*millrace-lint-disable-(next-line|file)(?:\s+(.*))?$/s;

export interface Comment {
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

interface Suppression {
  readonly comment: Comment;
  readonly rules: readonly LintRule[];
  /** `undefined`: the whole file. */
  readonly line: number | undefined;
  readonly usedRules: Set<LintRule>;
}

/** Removes the suppressed reports, and adds reports of invalid and unused suppressions. */
export function applySuppressions(
  reports: readonly Report[],
  comments: readonly Comment[],
  lineAt: (offset: number) => number,
  isOn: (rule: LintRule) => boolean,
): readonly Report[] {
  const suppressions: Suppression[] = [];
  const problems: Report[] = [];
  for (const comment of comments) {
    const [, scope, text = ''] = directive.exec(comment.value) ?? [];
    if (scope === undefined) continue;
    const rules = parseDirective(text);
    if (typeof rules === 'string') {
      problems.push(suppressionReport(comment, rules));
    } else {
      const line = scope === 'file' ? undefined : lineAt(comment.end) + 1;
      suppressions.push({ comment, rules, line, usedRules: new Set() });
    }
  }
  const active = reports.filter(({ rule, start }) => {
    const line = lineAt(start);
    const match = suppressions.find(
      (suppression) => (suppression.line ?? line) === line && suppression.rules.includes(rule),
    );
    match?.usedRules.add(rule);
    return match === undefined;
  });
  for (const { comment, rules, usedRules } of suppressions) {
    // A rule that is off cannot show that its suppression is needed.
    for (const rule of rules.filter((name) => isOn(name) && !usedRules.has(name))) {
      const reason = `unused suppression of ${rule}: remove it`;
      problems.push({ ...suppressionReport(comment, reason), severity: 'warning' });
    }
  }
  return [...active, ...problems];
}

/** The rules of a directive, or the problem with it. */
function parseDirective(text: string): readonly LintRule[] | string {
  const [names = '', ...reason] = text.split(/(?:^|\s)--(?:\s|$)/);
  const rules = names.split(/[\s,]+/).filter((name) => name !== '');
  const unknown = rules.find((rule) => !isLintRule(rule));
  if (unknown !== undefined) return `unknown rule '${unknown}'`;
  if (reason.join('').trim() === '') return 'a suppression needs a reason: … <rule> -- <reason>';
  if (rules.length === 0) return 'a suppression needs a rule: … <rule> -- <reason>';
  return rules.filter(isLintRule);
}

function suppressionReport({ start, end }: Comment, reason: string): Report {
  return { rule: 'suppression', start, end, reason };
}
