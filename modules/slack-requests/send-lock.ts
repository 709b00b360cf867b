// `:send-lock`: one worker at a time for one request, for 15 minutes at most. Its value is the fence that the
// attempt is opened with.

import { slackAddressing } from 'millrace/contracts';
import type { Clock } from 'millrace/foundation';
import type { KeyStore } from 'millrace/work';

export const sendLockMs = 900_000;

export interface SendLock extends AsyncDisposable {
  readonly fence: string;
  /** Whether it is still ours, and will be for so long. Asked just before something leaves. */
  holdsFor(ms: number): Promise<boolean>;
}

export type TakenLock =
  | { readonly kind: 'taken'; readonly lock: SendLock }
  | { readonly kind: 'held'; readonly expiresInMs: number };

export async function takeSendLock(
  keys: KeyStore,
  request: { readonly tenant: string; readonly id: string },
  {
    fence,
    ttlMs,
    clock,
  }: { readonly fence: string; readonly ttlMs: number; readonly clock: Clock },
): Promise<TakenLock> {
  const key = slackAddressing.sendLock(request.tenant, request.id);
  // From before it is taken: by our clock it ends early, never late.
  const untilMs = clock.now() + ttlMs;
  const held = await keys.putIfAbsent(key, fence, { ttlMs });
  if (held.value !== fence) return { kind: 'held', expiresInMs: held.expiresInMs ?? ttlMs };
  return {
    kind: 'taken',
    lock: {
      fence,
      async holdsFor(ms) {
        if (clock.now() + ms > untilMs) return false;
        return (await keys.get(key))?.value === fence && clock.now() + ms <= untilMs;
      },
      async [Symbol.asyncDispose]() {
        // Where the keys are away it ends by itself.
        await keys.remove(key, fence).catch(() => false);
      },
    },
  };
}
