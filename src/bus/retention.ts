// How long messages stay, by domain.

import { consumerGroups, createSubjects } from '../contracts/subjects.ts';
import { matchesFilter } from './bus-engine.ts';

export interface RetentionRule {
  /** The first rule that takes a subject counts. */
  readonly pattern: string;
  readonly ageMs?: number | undefined;
  readonly lengthMax?: number | undefined;
  /** On engines with `streamBytes`; others keep to age and length. */
  readonly bytesMax?: number | undefined;
  /** Into cold storage before it is trimmed; without one, it stays. */
  readonly isArchived?: boolean | undefined;
  /**
   * Of archived streams: a group of this name on the pattern, which acks what is in cold storage. Copied long
   * before it is old, so that its lag tells what a loss of the broker would take along.
   */
  readonly archiver?: string | undefined;
}

const dayMs = 86_400_000;

/**
 * The defaults: notify 7 days; events of system and api 3, of auth 30, of audit 365 and archived; tasks'
 * queue and progress 7, terminal 30 and archived. Dead letters stay for 30 days.
 *
 * @example
 * import { retentionDefaults, retentionOf } from 'millrace/bus';
 *
 * console.log(retentionOf(retentionDefaults(), 'gbe.events.audit.change')?.isArchived); // true
 */
export function retentionDefaults(options: { readonly root?: string } = {}): RetentionRule[] {
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
 * The rule that counts for a subject.
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
