// Retention rules: how long the messages of a subject stay in their stream.

import { consumerGroups, createSubjects } from '../contracts/subjects.ts';
import { matchesFilter } from './bus-engine.ts';

export interface RetentionRule {
  /** The first rule whose pattern matches a subject applies. */
  readonly pattern: string;
  readonly ageMs?: number | undefined;
  readonly lengthMax?: number | undefined;
  /** For engines with `streamBytes`; others ignore it. */
  readonly bytesMax?: number | undefined;
  /** Copies messages to cold storage before trimming; without cold storage, they are not trimmed. */
  readonly isArchived?: boolean | undefined;
  /**
   * For archived streams: a group of this name that acks what is in cold storage. It copies messages long before they
   * are old, so its lag is what a loss of the broker would lose.
   */
  readonly archiver?: string | undefined;
}

const dayMs = 86_400_000;

/**
 * The default rules: notify 7 days; events of system and api 3 days, of auth 30, of audit 365 (archived); queue and
 * progress of tasks 7 days, terminal 30 (archived); dead letters 30 days.
 *
 * @example
 * import { retentionDefaults, retentionOf } from 'millrace/bus';
 *
 * console.log(retentionOf(retentionDefaults(), 'gbe.events.audit.change')?.isArchived); // true
 */
export function retentionDefaults(
  options: { readonly root?: string | undefined } = {},
): RetentionRule[] {
  const { root } = createSubjects(options);
  const days = (pattern: string, count: number, more: Partial<RetentionRule> = {}) => ({
    pattern,
    ageMs: count * dayMs,
    ...more,
  });
  return [
    days(`${root}.notify.>`, 7),
    days(`${root}.events.system.>`, 3),
    days(`${root}.events.api.>`, 3),
    days(`${root}.events.auth.>`, 30),
    days(`${root}.events.audit.>`, 365, { isArchived: true }),
    days(`${root}.tasks._control.>`, 7),
    days(`${root}.tasks.*.queue`, 7),
    days(`${root}.tasks.*.progress`, 7),
    days(`${root}.tasks.*.terminal`, 30, { isArchived: true, archiver: consumerGroups.archiver }),
    days('_dead.>', 30),
    days('_redo.>', 7),
    { pattern: '_reply.>', ageMs: 3_600_000 },
  ];
}

/**
 * The rule that applies to a subject.
 *
 * @example
 * import { retentionOf } from 'millrace/bus';
 *
 * console.log(retentionOf([{ pattern: 'gbe.>', lengthMax: 10 }], 'gbe.a')?.lengthMax); // 10
 */
export function retentionOf(
  rules: readonly RetentionRule[],
  subject: string,
): RetentionRule | undefined {
  return rules.find(({ pattern }) => matchesFilter(pattern, subject));
}
