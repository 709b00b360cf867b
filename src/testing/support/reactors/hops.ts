// Wraps the roles and the sender of a simulated process: each external call passes `hop` before the
// request and after the reply, so a test can stop the process at each of these points.

import type { EventReader } from '../../../store/event-store.ts';
import type { SendCommand } from '../../../reactors/reaction.ts';
import type { SagaRoles } from '../../../reactors/saga-runner.ts';

type Hop = (label: string) => Promise<void>;

export function throughHops(
  { store, subscriptions, sagas }: SagaRoles,
  send: SendCommand,
  hop: Hop,
) {
  const around = async <T>(label: string, work: () => Promise<T>): Promise<T> => {
    await hop(label);
    const result = await work();
    await hop(`${label} answered`);
    return result;
  };

  function guarded<T extends object>(part: T, name: string): T {
    const members = Object.entries(part).map(([member, call]) => {
      if (typeof call !== 'function') return [member, call];
      const work = (...args: readonly unknown[]): Promise<unknown> =>
        around(`${name}.${member}`, async () =>
          (call as (...given: readonly unknown[]) => unknown)(...args),
        );
      return [member, work];
    });
    return Object.fromEntries(members) as T;
  }

  const roles: SagaRoles = {
    store: {
      ...store,
      append: (...args) => around('append', () => store.append(...args)),
      findEvent: (...args) => around('findEvent', () => store.findEvent(...args)),
      readStream: (...args): EventReader => {
        const reader = store.readStream(...args);
        return {
          pages: () => reader.pages(),
          toArray: () => around('readStream', () => reader.toArray()),
          [Symbol.asyncIterator]: () => reader[Symbol.asyncIterator](),
        };
      },
    },
    subscriptions: {
      ...subscriptions,
      checkpoints: guarded(subscriptions.checkpoints, 'checkpoints'),
      deadLetters: guarded(subscriptions.deadLetters, 'deadLetters'),
      waiting: guarded(subscriptions.waiting, 'waiting'),
      leases: guarded(subscriptions.leases, 'leases'),
      settle: (...args) => around('settle', () => subscriptions.settle(...args)),
    },
    sagas: guarded(sagas, 'sagas'),
  };
  const guardedSend: SendCommand = async (request) => {
    await hop(`send ${request.command.type}`);
    try {
      return await send(request);
    } finally {
      await hop(`send ${request.command.type} answered`);
    }
  };
  return { roles, send: guardedSend };
}
