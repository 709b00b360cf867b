// `millrace lint`: finds invalid and hand-built names, for people and for CI.

import { relative, resolve } from 'node:path';
import { isLintRule, lintRules, type Finding, type LintRule } from '../contracts/lint/finding.ts';
import type { LintReport } from '../contracts/lint/lint-paths.ts';
import { didYouMean, exitCodes, readArgs, usage, type Command } from './command.ts';
import type { Paint } from './paint.ts';
import { createProgress } from './progress.ts';

const options = {
  json: { type: 'boolean', summary: 'prints one JSON document: findings, files, skipped' },
  rule: {
    type: 'string',
    multiple: true,
    value: 'rule',
    summary: 'reports only this rule; repeatable',
  },
  quiet: { type: 'boolean', summary: 'omits warnings' },
  'max-warnings': { type: 'string', value: 'N', summary: 'fails if there are more warnings' },
  root: {
    type: 'string',
    multiple: true,
    value: 'token',
    summary: 'first token of subjects; repeatable (gbe)',
  },
} as const;

export const lintCommand: Command = {
  name: 'lint',
  summary: 'finds invalid names and names built by hand',
  usage: 'lint <paths…> [options]',
  options,
  examples: [
    'millrace lint src',
    'millrace lint src --rule stream-name --rule redis-key',
    'millrace lint . --json --max-warnings 0',
  ],
  sections: [
    {
      title: 'Rules',
      rows: Object.entries(lintRules).map(([rule, { summary: text }]) => [rule, text]),
    },
    {
      title: 'Suppressions',
      rows: [
        ['// millrace-lint-disable-next-line <rule> -- <reason>', 'for one line'],
        ['// millrace-lint-disable-file <rule> -- <reason>', 'for a file'],
      ],
    },
  ],
  async run({ args, stdout, stderr, signal, cwd, paint }) {
    const { values, positionals } = readArgs({ name: 'lint', args }, options);
    if (positionals.length === 0) throw usage('lint needs a path: try millrace lint src');
    const warningsMax = readCount(values['max-warnings']);
    const rules = values.rule?.map(readRule);
    const { lintPaths } = await import('../contracts/lint/lint-paths.ts');
    const progress = createProgress(stderr);
    const report = await lintPaths(
      positionals.map((path) => resolve(cwd, path)),
      {
        signal,
        onProgress: ({ files, file }) => progress.show(`${files} files … ${shown(cwd, file)}`),
        rules,
        roots: values.root,
      },
    ).finally(() => progress.clear());

    const { findings } = report;
    const warnings = findings.filter(({ severity }) => severity === 'warning').length;
    const errors = findings.length - warnings;
    const shownReport = withPaths(report, cwd, values.quiet === true);
    stdout.write(
      values.json === true
        ? `${JSON.stringify(shownReport, null, 2)}\n`
        : `${shownReport.findings.map((finding) => line(finding, paint)).join('')}${summary(report, { errors, warnings }, paint)}\n`,
    );
    return errors > 0 || warnings > warningsMax ? exitCodes.failed : exitCodes.ok;
  },
};

function readRule(text: string): LintRule {
  if (isLintRule(text)) return text;
  throw usage(`lint has no rule ${didYouMean(text, Object.keys(lintRules))}`);
}

function readCount(text: string | undefined): number {
  if (text === undefined) return Infinity;
  if (!/^\d+$/.test(text)) throw usage(`--max-warnings takes a whole number, not '${text}'`);
  return Number(text);
}

/** Replaces absolute paths by paths relative to the working directory. */
function withPaths(report: LintReport, cwd: string, quiet: boolean): LintReport {
  return {
    ...report,
    findings: report.findings
      .filter(({ severity }) => !quiet || severity === 'error')
      .map((finding) => Object.assign({}, finding, { file: shown(cwd, finding.file) })),
    skipped: report.skipped.map((skip) => ({ file: shown(cwd, skip.file), reason: skip.reason })),
  };
}

function shown(cwd: string, file: string): string {
  const path = relative(cwd, file);
  return path === '' || path.startsWith('..') ? file : path;
}

function line(finding: Finding, paint: Paint): string {
  const { file, line: row, column, severity, rule, reason, suggestion } = finding;
  const severe = severity === 'error' ? paint.red(severity) : paint.yellow(severity);
  const fix = suggestion === undefined ? '' : `    ${paint.green(`→ ${suggestion}`)}\n`;
  return `${paint.bold(`${file}:${row}:${column}`)}  ${severe}  ${paint.dim(rule)}  ${reason}\n${fix}`;
}

function summary(
  { files, skipped, truncated }: LintReport,
  { errors, warnings }: { readonly errors: number; readonly warnings: number },
  paint: Paint,
): string {
  const found =
    errors + warnings === 0
      ? paint.green('no findings')
      : `${count(errors, 'error')}, ${count(warnings, 'warning')}`;
  const left = skipped.map(({ reason }) => reason);
  const notes = [
    `${count(files, 'file')}: ${found}`,
    ...(left.length === 0 ? [] : [`${left.length} skipped (${[...new Set(left)].join(', ')})`]),
    ...(truncated ? ['stopped early: there are more findings'] : []),
  ];
  return notes.join('; ');
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}
