// The keys of one saga. The document's hash is named after the saga alone; two versions of it, and
// sagas of the same name elsewhere, are told apart by the streams that are its fields.

import { nameInvalid } from '../../contracts/identifier.ts';
import { redisKeys } from '../../contracts/redis-keys.ts';
import { parseStreamName } from '../../contracts/stream-name.ts';

export interface SagaSpace {
  readonly category: string;
  /** The entries, and what finds them by status. */
  readonly tenant: (tenant: string) => readonly [string, string];
  readonly due: (shard: number) => string;
  readonly revisions: string;
  readonly tenants: string;
  readonly losses: string;
}

export function sagaSpace(category: string): SagaSpace {
  const { bc, agg: name, version, ...parsed } = parseStreamName(`${category}-any-any`);
  if (parsed.category !== category) {
    throw nameInvalid('saga', category, 'must be <bc>.<name>.v<version>', parsed.category);
  }
  return {
    category,
    tenant: (tenant) => [
      redisKeys.workflowCheckpoint(name, tenant),
      redisKeys.workflowByStatus(name, tenant),
    ],
    due: (shard) => redisKeys.workflowDue(name, bc, version, shard),
    revisions: redisKeys.workflowPart(name, bc, version, 'revisions'),
    tenants: redisKeys.workflowPart(name, bc, version, 'tenants'),
    losses: redisKeys.workflowPart(name, bc, version, 'losses'),
  };
}
