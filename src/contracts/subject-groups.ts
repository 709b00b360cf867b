// Who reads the task streams together: the names of the consumer groups.

import type { Identifier } from './identifier.ts';
import { checkSubjectToken } from './subject-tokens.ts';

/**
 * The consumer groups of the task streams. A task type's queue has its workers and its progress an
 * orchestrator; the terminal streams of all types are read by the monitors and by the archiver.
 *
 * @example
 * import { consumerGroups } from 'millrace/contracts';
 *
 * console.log(consumerGroups.workers('email-send')); // email-send-workers
 */
export const consumerGroups = {
  workers<const Type extends string>(taskType: Identifier<Type>): `${Type}-workers` {
    checkSubjectToken('task type', taskType);
    return `${taskType}-workers` as `${Type}-workers`;
  },
  orchestrator<const Type extends string>(taskType: Identifier<Type>): `${Type}-orchestrator` {
    checkSubjectToken('task type', taskType);
    return `${taskType}-orchestrator` as `${Type}-orchestrator`;
  },
  monitors: 'monitors',
  archiver: 'archiver',
} as const;
