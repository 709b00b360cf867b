import { MillraceError } from '../foundation/error.ts';
import type { Fence } from './subscription-storage.ts';

/** What an owner hears that was taken over from, whatever it wanted to write. */
export function leaseLost({ subscription, shard, token }: Fence): MillraceError {
  return new MillraceError('LEASE_LOST', `shard ${shard} of ${subscription} has another owner`, {
    details: { subscription, shard, token },
  });
}
