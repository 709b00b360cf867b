// The rules of the linter and the shape of a finding.

export type Severity = 'error' | 'warning';

export const lintRules = {
  'event-type': {
    severity: 'error',
    summary: 'event types are <agg>.<action>.v<version>, built by buildEventType',
  },
  'event-tense': {
    severity: 'warning',
    summary: 'the action of an event type is in the past tense',
  },
  'stream-name': {
    severity: 'error',
    summary: 'streams are <bc>.<agg>.v<version>-<tenant>-<id>, built by buildStreamName',
  },
  'subscription-name': {
    severity: 'error',
    summary: 'subscriptions are sub:<service>:<name>:v<version>',
  },
  'redis-key': {
    severity: 'error',
    summary: 'Redis keys follow the keyspace, with the tenant as the hash tag',
  },
  subject: {
    severity: 'error',
    summary: 'subjects and patterns belong to the subject hierarchy',
  },
  'queue-name': {
    severity: 'error',
    summary: 'queue names and job ids contain no ":", which BullMQ rejects',
  },
  suppression: {
    severity: 'error',
    summary: 'a suppression names a rule, gives a reason and is needed',
  },
  syntax: { severity: 'error', summary: 'the file parses' },
} as const satisfies Record<string, { readonly severity: Severity; readonly summary: string }>;

export type LintRule = keyof typeof lintRules;

export function isLintRule(text: string): text is LintRule {
  return Object.hasOwn(lintRules, text);
}

export interface Finding {
  readonly rule: LintRule;
  readonly severity: Severity;
  readonly file: string;
  /** Line and column start at 1; columns count UTF-16 units. */
  readonly line: number;
  readonly column: number;
  /** Offsets into the text without its byte order mark; `suggestion` replaces this range. */
  readonly start: number;
  readonly end: number;
  /** The code in question, at most 120 characters of it. */
  readonly text: string;
  readonly reason: string;
  /** Replacement code; absent if it cannot be derived from the code. */
  readonly suggestion?: string | undefined;
}

/** A finding before it gets the file, line and column. */
export interface Report {
  readonly rule: LintRule;
  readonly start: number;
  readonly end: number;
  readonly reason: string;
  readonly suggestion?: string | undefined;
  /** Default: the severity of the rule. */
  readonly severity?: Severity | undefined;
}

export interface LintOptions {
  /** Report only these rules. */
  readonly rules?: readonly LintRule[] | undefined;
  /** First tokens of subjects; default `['gbe']`. */
  readonly roots?: readonly string[] | undefined;
}
