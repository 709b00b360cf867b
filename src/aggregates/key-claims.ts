// Which aggregate and command an idempotency key belongs to, across all streams.

/** What a key was first used for. */
export interface KeyUse {
  readonly stream: string;
  readonly command: string;
}

/**
 * A stream recognises its own keys without help. This port also catches a key that comes back for
 * another aggregate, at the price of one write for each command that has a key.
 *
 * @example
 * import { memoryKeyClaims, type KeyClaims } from 'millrace/aggregates';
 *
 * const claims: KeyClaims = memoryKeyClaims();
 * const use = { stream: 'banking.account.v1-core-a1', command: 'account.deposit' };
 * console.log(await claims.claim('core|banking|deposit|order-1', use)); // the same use: it was free
 */
export interface KeyClaims {
  /** Takes the key for this use if it is free, atomically; returns the use that holds it. */
  claim(key: string, use: KeyUse): Promise<KeyUse>;
}

/**
 * Claims in memory, for unit tests.
 *
 * @example
 * import { memoryKeyClaims } from 'millrace/aggregates';
 *
 * const claims = memoryKeyClaims();
 * await claims.claim('core|banking|open|a1', { stream: 'banking.account.v1-core-a1', command: 'account.open' });
 */
export function memoryKeyClaims(): KeyClaims {
  const uses = new Map<string, KeyUse>();
  return {
    async claim(key, use) {
      const held = uses.get(key);
      if (held !== undefined) return held;
      uses.set(key, { stream: use.stream, command: use.command });
      return use;
    },
  };
}
