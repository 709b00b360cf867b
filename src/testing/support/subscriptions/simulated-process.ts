// A simulated process: each call to the shared storage waits for the scheduler, and the process can be
// killed or frozen at any call.

import type fc from 'fast-check';
import type { MemoryTransaction } from './memory/storage.ts';
import type {
  EffectTransaction,
  Settlement,
  SubscriptionStorage,
} from '../../../subscriptions/subscription-storage.ts';

type Storage = SubscriptionStorage<MemoryTransaction>;

export interface SimulatedProcess {
  readonly storage: Storage;
  /** Kills the process: its next pending call never resolves. */
  kill(): void;
  /** Suspends the process while the others continue. */
  freeze(): void;
  thaw(): void;
  /** A point at which the process can be killed, frozen or overtaken. */
  pause(label: string): Promise<void>;
}

export function simulateProcess(
  scheduler: Pick<fc.Scheduler, 'schedule'>,
  shared: Storage,
  /** Called when a checkpoint is stored, alone or with these effects. */
  onSaved: (position: string, effects?: readonly string[]) => void,
): SimulatedProcess {
  let isDead = false;
  let frozen: PromiseWithResolvers<void> | undefined;

  async function pause(label: string): Promise<void> {
    await scheduler.schedule(Promise.resolve(), label);
    await frozen?.promise;
    if (isDead) await new Promise<never>(() => undefined);
  }

  /** Pauses before and after the call, because the response may also get lost. */
  function guarded<T extends object>(part: T, name: string): T {
    const methods = Object.entries(part).map(([method, call]) => {
      if (typeof call !== 'function') return [method, call];
      const work = async (...args: readonly unknown[]): Promise<unknown> => {
        await pause(`${name}.${method}`);
        const result: unknown = await (call as (...given: readonly unknown[]) => unknown)(...args);
        if (method === 'save') onSaved(String(args[1]));
        await pause(`${name}.${method} answered`);
        return result;
      };
      return [method, work];
    });
    return Object.fromEntries(methods) as T;
  }

  const storage: Storage = {
    capabilities: shared.capabilities,
    checkpoints: guarded(shared.checkpoints, 'checkpoints'),
    processed: guarded(shared.processed, 'processed'),
    deadLetters: guarded(shared.deadLetters, 'deadLetters'),
    waiting: guarded(shared.waiting, 'waiting'),
    leases: guarded(shared.leases, 'leases'),
    tokens: guarded(shared.tokens, 'tokens'),
    ...guarded(
      { settle: (...args: Parameters<Storage['settle']>) => shared.settle(...args) },
      'storage',
    ),
    async begin(fence): Promise<EffectTransaction<MemoryTransaction>> {
      await pause('begin');
      const effect = await shared.begin(fence);
      const { transaction } = effect;
      return {
        transaction,
        ...guarded(
          {
            async commit(settlement: Settlement) {
              const result = await effect.commit(settlement);
              if (settlement.kind === 'delivered' && result === 'settled') {
                const { position = '' } = await shared.checkpoints.load(fence);
                onSaved(position, settlement.positions);
              }
              return result;
            },
            rollback: () => effect.rollback(),
          },
          'tx',
        ),
      };
    },
  };

  return {
    storage,
    pause,
    kill() {
      isDead = true;
      frozen?.resolve();
    },
    freeze() {
      frozen ??= Promise.withResolvers();
    },
    thaw() {
      frozen?.resolve();
      frozen = undefined;
    },
  };
}
