// One source text in, its findings out: parse, walk, judge, suppress, place.

import { loadDriver } from '../../foundation/load-driver.ts';
import { constantsOf, importsOf } from './file-facts.ts';
import {
  lintRules,
  type Finding,
  type LintOptions,
  type LintRule,
  type Report,
} from './finding.ts';
import { isNestedTooDeep } from './nesting.ts';
import { placeOf, type Place } from './place.ts';
import type { Candidate, RuleContext, TextRule } from './rule.ts';
import { builderCallRule } from './rules/builder-call.ts';
import { eventTenseRule } from './rules/event-tense.ts';
import { eventTypeRule } from './rules/event-type.ts';
import { queueNameRule } from './rules/queue-name.ts';
import { redisKeyRule } from './rules/redis-key.ts';
import { streamNameRule } from './rules/stream-name.ts';
import { subjectRule } from './rules/subject.ts';
import { subscriptionNameRule } from './rules/subscription-name.ts';
import { createLines } from './lines.ts';
import { mayHoldNames } from './prefilter.ts';
import { applySuppressions } from './suppressions.ts';
import type { Text } from './text.ts';
import { walk } from './walk.ts';

export interface Linter {
  lint(file: string, source: string): readonly Finding[];
}

/** The first that has something to say about a text says it: what a text is used for comes first. */
const textRules: readonly TextRule[] = [
  queueNameRule,
  redisKeyRule,
  subscriptionNameRule,
  subjectRule,
  streamNameRule,
  eventTypeRule,
  eventTenseRule,
];

const rootsDefault = ['gbe'];

/** Names have at most 255 characters; far beyond, a text is a document. */
const nameCharsMax = 1_000;

/** Loads the parser once, for as many files as there are. */
export async function createLinter(options: LintOptions = {}): Promise<Linter> {
  const { parseSync, visitorKeys } = await loadDriver('oxc-parser', () => import('oxc-parser'));
  const roots = options.roots ?? rootsDefault;
  const chosen = options.rules === undefined ? undefined : new Set(options.rules);
  const isOn = (rule: LintRule): boolean => chosen?.has(rule) ?? true;

  return {
    lint(file, text) {
      // Offsets of the parser and columns of editors both begin behind the mark.
      const source = text.startsWith('\uFEFF') ? text.slice(1) : text;
      const lines = createLines(source);
      const toFinding = (report: Report): Finding => findingOf(report, file, source, lines);
      const unreadable = (report: Report): readonly Finding[] =>
        isOn('syntax') ? [toFinding(report)] : [];
      if (isNestedTooDeep(source)) return unreadable(tooDeep);
      const parsed = parseSync(file, source, { preserveParens: false });
      const [error] = parsed.errors;
      if (error !== undefined) return unreadable(syntaxReport(error));
      // Most files hold no name: the tree, which is what costs time, is not built for them.
      if (!mayHoldNames(source, roots)) return [];
      const { program } = parsed;
      const context: RuleContext = { roots, imports: importsOf(parsed.module.staticImports) };
      const reports: Report[] = [];
      walk(
        { program, source, keys: visitorKeys, constants: constantsOf(program.body, roots) },
        {
          text: (found) => {
            if (found.form.length > nameCharsMax) return;
            const report = firstReport(found, context, isOn);
            if (report !== undefined) reports.push(report);
          },
          call: (spot) => {
            reports.push(...builderCallRule(spot, context));
          },
        },
      );
      const kept = unique(reports).filter((report) => isOn(report.rule));
      return applySuppressions(kept, parsed.comments, (offset) => lines.at(offset).line, isOn)
        .filter((report) => isOn(report.rule))
        .toSorted((a, b) => a.start - b.start || a.end - b.end)
        .map(toFinding);
    },
  };
}

function firstReport(
  text: Text,
  context: RuleContext,
  isOn: (rule: LintRule) => boolean,
): Report | undefined {
  const candidate = candidateOf(text);
  for (const rule of textRules) {
    const report = rule(candidate, context);
    if (report !== undefined && isOn(report.rule)) return fitted(report, candidate.place);
  }
  return undefined;
}

function candidateOf(text: Text): Candidate {
  let place: Place | undefined;
  return {
    text,
    get place() {
      return (place ??= placeOf(text.spot));
    },
  };
}

/** Where only some code may stand, the suggestion takes the form that may stand there. */
function fitted(report: Report, { slot }: Place): Report {
  const { suggestion } = report;
  if (suggestion === undefined || suggestion.startsWith("'")) return report;
  switch (slot) {
    case 'expression':
      return report;
    case 'attribute':
      return { ...report, suggestion: `{${suggestion}}` };
    case 'key':
      return { ...report, suggestion: `[${suggestion}]` };
    default:
      return { ...report, suggestion: undefined };
  }
}

/** A builder's argument can be found as a text and as an argument: once is enough. */
function unique(reports: readonly Report[]): readonly Report[] {
  const seen = new Set<string>();
  return reports.filter(({ start, end }) => {
    const span = `${start}:${end}`;
    return !seen.has(span) && seen.add(span);
  });
}

/** Only a warning: the file may be fine, and nobody could suppress this inside it. */
const tooDeep: Report = {
  rule: 'syntax',
  severity: 'warning',
  start: 0,
  end: 0,
  reason: 'the file nests too deep to be parsed safely',
};

interface SyntaxProblem {
  readonly message: string;
  readonly labels: readonly { readonly start: number; readonly end: number }[];
}

function syntaxReport({ message, labels }: SyntaxProblem): Report {
  const { start, end } = labels[0] ?? { start: 0, end: 0 };
  return { rule: 'syntax', start, end, reason: `the file does not parse: ${message}` };
}

const textCharsMax = 120;

function findingOf(
  report: Report,
  file: string,
  source: string,
  lines: ReturnType<typeof createLines>,
): Finding {
  const { rule, start, end, reason, suggestion, severity } = report;
  const code = source.slice(start, end);
  return {
    rule,
    severity: severity ?? lintRules[rule].severity,
    file,
    ...lines.at(start),
    start,
    end,
    text: code.length > textCharsMax ? `${code.slice(0, textCharsMax)}…` : code,
    reason,
    ...(suggestion === undefined ? {} : { suggestion }),
  };
}
