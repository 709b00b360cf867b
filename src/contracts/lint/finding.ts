// What the linter says: one finding per bad name, with its place, its reason and its mend.

export type Severity = 'error' | 'warning';

/** Every rule, what it is about, and how bad a finding of it is. */
export const lintRules = {
  'event-type': {
    severity: 'error',
    summary: 'event types are <agg>.<action>.v<version>, put together by buildEventType',
  },
  'event-tense': {
    severity: 'warning',
    summary: 'the action of an event type is in the past tense',
  },
  'stream-name': {
    severity: 'error',
    summary: 'streams are <bc>.<agg>.v<version>-<tenant>-<id>, put together by buildStreamName',
  },
  'subscription-name': {
    severity: 'error',
    summary: 'subscriptions are sub:<service>:<name>:v<version>',
  },
  'redis-key': {
    severity: 'error',
    summary: 'Redis keys follow the keyspace, with the tenant as their hash tag',
  },
  subject: {
    severity: 'error',
    summary: 'subjects and patterns lie in the subject hierarchy',
  },
  'queue-name': {
    severity: 'error',
    summary: 'BullMQ refuses ":" in queue names and job ids',
  },
  suppression: {
    severity: 'error',
    summary: 'a suppression names a rule, gives its reason and is needed',
  },
  syntax: { severity: 'error', summary: 'the file parses' },
} as const satisfies Record<string, { readonly severity: Severity; readonly summary: string }>;

export type LintRule = keyof typeof lintRules;

export interface Finding {
  readonly rule: LintRule;
  readonly severity: Severity;
  readonly file: string;
  /** Both from 1; columns count UTF-16 units, as editors do. */
  readonly line: number;
  readonly column: number;
  /** Offsets into the text, without a byte order mark: where `suggestion` goes. */
  readonly start: number;
  readonly end: number;
  /** The code that it is about, shortened. */
  readonly text: string;
  readonly reason: string;
  /** Code to put in its place; absent where only a person can know the parts. */
  readonly suggestion?: string;
}

/** A finding before the linter gives it a place in a file. */
export interface Report {
  readonly rule: LintRule;
  readonly start: number;
  readonly end: number;
  readonly reason: string;
  readonly suggestion?: string | undefined;
  readonly severity?: Severity;
}

export interface LintOptions {
  /** Only findings of these rules. */
  readonly rules?: readonly LintRule[];
  /** First tokens of subjects; `gbe` unless told. */
  readonly roots?: readonly string[];
}

export function isLintRule(text: string): text is LintRule {
  return Object.hasOwn(lintRules, text);
}
