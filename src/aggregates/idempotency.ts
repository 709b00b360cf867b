// Idempotency keys: a command with a key has deterministic ids, and each key has exactly one use.

import { parseIdempotencyKey } from '../contracts/idempotency-key.ts';
import { MillraceError } from '../foundation/error.ts';
import { idFromKey, type IdSource } from '../foundation/ids.ts';

/** The event header that names the command which caused the event. */
export const commandHeader = 'command';

/**
 * The header with the hash of the payload that the sender of a command gave: a duplicate with another hash is an error
 * of the sender. Set for commands of clients; a reactor may decide otherwise after an update, so its commands have none.
 */
export const payloadHashHeader = 'payloadHash';

export interface CommandIdentity {
  readonly key: string | undefined;
  readonly commandId: string;
  /** Id of the n-th event that the command causes, from 0. */
  eventId(index: number): string;
  /** Ids for one decision; a repeated decision of a command with a key gets the same ids. */
  decisionIds(): () => string;
}

export function identifyCommand(
  {
    tenant,
    idempotencyKey: key,
  }: { readonly tenant: string; readonly idempotencyKey?: string | undefined },
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
      `the idempotency key belongs to tenant '${owner}', the command to tenant '${tenant}'`,
      { details: { tenant, owner } },
    );
  }
  return {
    key,
    // The part after the last # keeps the ids distinct across commands, events and decisions.
    commandId: idFromKey(`${key}#command`),
    eventId: (index) => idFromKey(`${key}#${index}`),
    decisionIds: () => {
      let count = 0;
      return () => idFromKey(`${key}#id-${count++}`);
    },
  };
}

/** The stream and command that a key was first used for. */
export interface KeyUse {
  readonly stream: string;
  readonly command: string;
}

/** Throws if the key was first used for another stream or command: that is a mistake of the caller. */
export function assertSameUse(wanted: KeyUse, first: KeyUse, key: string | undefined): void {
  if (wanted.stream === first.stream && wanted.command === first.command) return;
  throw keyReused(first, key, '');
}

type Headers = Readonly<Record<string, unknown>>;

/** Throws if both payloads are known and differ. Events from before this check have no hash. */
export function assertSamePayload(
  use: KeyUse,
  [wanted = {}, first = {}]: readonly [wanted: Headers | undefined, first: Headers | undefined],
  key: string | undefined,
): void {
  const hashes = [wanted[payloadHashHeader], first[payloadHashHeader]];
  if (hashes.includes(undefined) || hashes[0] === hashes[1]) return;
  throw keyReused(use, key, ' with another payload');
}

function keyReused(first: KeyUse, key: string | undefined, how: string): MillraceError {
  return new MillraceError(
    'COMMAND_KEY_REUSED',
    `idempotency key '${key}' was already used for '${first.command}' on '${first.stream}'${how}`,
    { details: { idempotencyKey: key, ...first } },
  );
}

/**
 * A stream recognises keys of earlier commands without this port. The port also detects a key that is reused for
 * another aggregate, at the cost of one write per command with a key.
 *
 * @example
 * import type { KeyClaims } from 'millrace/aggregates';
 * import { openMemory } from 'millrace/engines/memory';
 *
 * const claims: KeyClaims = openMemory().keyClaims;
 * const use = { stream: 'banking.account.v1-core-a1', command: 'account.deposit' };
 * console.log(await claims.claim('core|banking|deposit|order-1', use)); // the same use: the key was free
 */
export interface KeyClaims {
  /** Atomically claims the key for this use if it is free; returns the use that owns the key. */
  claim(key: string, use: KeyUse): Promise<KeyUse>;
}
