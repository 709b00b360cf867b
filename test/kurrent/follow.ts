// A client subscription that a test controls.

import { once } from 'node:events';
import type { Readable } from 'node:stream';
import type { ResolvedEvent } from '@kurrent/kurrentdb-client';

export interface Followed<T extends ResolvedEvent = ResolvedEvent> extends AsyncDisposable {
  readonly seen: readonly T[];
  /** All received events, when there are at least this many. */
  count(atLeast: number): Promise<readonly T[]>;
  /** Resolves when the subscription has caught up. */
  caughtUp(): Promise<void>;
  /** The error that ends the subscription. */
  failed(): Promise<unknown>;
}

/** Any subscription: a Readable with `unsubscribe`. */
interface Subscription extends Readable {
  unsubscribe(): Promise<void>;
}

const waitMsMax = 120_000;

export function followed<T extends ResolvedEvent = ResolvedEvent>(
  opened: object,
  onEvent?: (event: T) => void | Promise<void>,
): Followed<T> {
  const subscription = opened as Subscription;
  const seen: T[] = [];
  const waiting = new Set<() => void>();
  let failure: { readonly error: unknown } | undefined;
  let isCaughtUp = false;
  const wake = (): void => {
    for (const check of waiting) check();
  };
  subscription.on('data', (event: T) => {
    seen.push(event);
    void onEvent?.(event);
    wake();
  });
  subscription.on('caughtUp', () => {
    isCaughtUp = true;
    wake();
  });
  subscription.on('error', (error: unknown) => {
    failure ??= { error };
    wake();
  });
  const until = (what: string, holds: () => boolean): Promise<void> =>
    new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        waiting.delete(check);
      };
      const check = (): void => {
        if (holds()) {
          leave();
          resolve();
        } else if (failure !== undefined) {
          leave();
          reject(failure.error);
        }
      };
      const timer = setTimeout(() => {
        leave();
        reject(new Error(`timeout while waiting for ${what}; ${seen.length} events arrived`));
      }, waitMsMax);
      waiting.add(check);
      check();
    });
  return {
    seen,
    async count(atLeast) {
      await until(`${atLeast} events`, () => seen.length >= atLeast);
      return seen;
    },
    caughtUp: () => until('caughtUp', () => isCaughtUp),
    async failed() {
      await until('an error', () => failure !== undefined);
      return failure?.error;
    },
    async [Symbol.asyncDispose]() {
      await subscription.unsubscribe();
    },
  };
}

export async function confirmed(opened: object): Promise<void> {
  await once(opened as Readable, 'confirmation');
}
