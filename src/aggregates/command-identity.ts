// Who a command is: new each time, or, with an idempotency key, the same whenever it comes back.

import { parseIdempotencyKey } from '../contracts/idempotency-key.ts';
import { MillraceError } from '../foundation/error.ts';
import { idFromKey, type IdSource } from '../foundation/ids.ts';

export interface CommandIdentity {
  readonly key: string | undefined;
  readonly commandId: string;
  /** Of the n-th event that the command makes happen, from 0. */
  eventId(index: number): string;
  /** Ids for one decision; a decision that is taken again gets the same ones where there is a key. */
  decisionIds(): () => string;
}

export function identifyCommand(
  { tenant, idempotencyKey: key }: { readonly tenant: string; readonly idempotencyKey?: string },
  ids: IdSource,
): CommandIdentity {
  if (key === undefined) {
    const next = (): string => ids.next();
    return { key, commandId: next(), eventId: next, decisionIds: () => next };
  }
  const { tenant: owner } = parseIdempotencyKey(key);
  if (owner !== tenant) {
    throw new MillraceError(
      'TENANT_MISMATCH',
      `an idempotency key of tenant '${owner}' came with a command of tenant '${tenant}'`,
      { details: { tenant, owner } },
    );
  }
  return {
    key,
    // What follows the last # keeps these apart: no key's command has the id of another's event.
    commandId: idFromKey(`${key}#command`),
    eventId: (index) => idFromKey(`${key}#${index}`),
    decisionIds: () => {
      let count = 0;
      return () => idFromKey(`${key}#id-${count++}`);
    },
  };
}
