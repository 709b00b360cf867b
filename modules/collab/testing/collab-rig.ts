// A workspace with users, and reactors that a test runs step by step: in any order that subscriptions allow (each reactor gets
// the events of a stream in order), with duplicate events.

import { buildIdempotencyKey, type NewCommand } from 'millrace/contracts';
import { idFromKey, type Clock } from 'millrace/foundation';
import { createPlatform, type Platform } from 'millrace/platform';
import type { Reactor } from 'millrace/reactors';
import type { RecordedEvent } from 'millrace/store';
import { createChat, postMessage } from '../chat-events.ts';
import { collab } from '../collab.ts';
import type { ChatType } from '../fields.ts';
import { addMember, createWorkspace } from '../workspace-events.ts';

export const tenant = 'core';

export interface CollabRig extends AsyncDisposable {
  readonly platform: Platform;
  send(id: string, command: NewCommand): Promise<void>;
  events(): Promise<readonly RecordedEvent[]>;
  /** Runs one pending reactor, chosen by `pick`. False: none is pending. */
  step(pick?: (count: number) => number): Promise<boolean>;
  settle(): Promise<void>;
  /** Delivers every event again to every reactor. */
  replay(): Promise<void>;
}

/** `ada` is the admin, `bob` and `eve` are members; the chat `c-1` is private, with `ada` and `bob`. */
export async function collabRig(
  type: ChatType = 'task',
  { clock }: { readonly clock?: Clock } = {},
): Promise<CollabRig> {
  const platform = await createPlatform({
    engines: { store: 'memory:' },
    modules: [collab()],
    ...(clock === undefined ? {} : { clock }),
  });
  const { reactors } = platform.modules;
  const send = async (id: string, command: NewCommand): Promise<void> => {
    await platform.handle({ tenant, id, command, user: { id: 'ada' } });
  };
  /** The number of handled events by reactor and stream. */
  const done = new Map<string, number>();
  const events = (): Promise<RecordedEvent[]> => Array.fromAsync(platform.engines.store.readAll());

  async function react(reactor: Reactor, event: RecordedEvent): Promise<void> {
    const { signal } = new AbortController();
    for (const reaction of await reactor.react(event, { attempt: 1, signal })) {
      const { id, command, user } = reaction;
      await platform.handle({
        tenant: event.tenant,
        id,
        command,
        correlationId: event.correlationId,
        causationId: event.eventId,
        idempotencyKey: buildIdempotencyKey({
          tenant: event.tenant,
          service: reactor.service,
          operation: reactor.reactor,
          naturalKey: idFromKey(`${event.eventId} ${command.type} ${id}`),
        }),
        ...(user === undefined ? {} : { user }),
      });
    }
  }

  const rig: CollabRig = {
    platform,
    send,
    events,
    async step(pick = () => 0) {
      const all = await events();
      const waiting = reactors.flatMap((reactor) => {
        const own = all.filter(({ type: each }) => reactor.filter.types?.includes(each));
        return [...Map.groupBy(own, ({ stream }) => stream)].flatMap(([stream, list]) => {
          const key = `${reactor.name} ${stream}`;
          const event = list[done.get(key) ?? 0];
          return event === undefined ? [] : [{ reactor, event, key }];
        });
      });
      const next = waiting[pick(waiting.length)];
      if (next === undefined) return false;
      await react(next.reactor, next.event);
      // Sometimes the process dies before it stores its progress, so the event is delivered again.
      if (pick(4) !== 3) done.set(next.key, (done.get(next.key) ?? 0) + 1);
      return true;
    },
    async settle() {
      while (await rig.step());
    },
    async replay() {
      done.clear();
      await rig.settle();
    },
    [Symbol.asyncDispose]: () => platform[Symbol.asyncDispose](),
  };
  await send('w-1', createWorkspace({ name: 'Team', createdBy: 'ada', username: 'ada' }));
  for (const userId of ['bob', 'eve']) {
    await send('w-1', addMember({ userId, username: userId, role: 'member', by: 'ada' }));
  }
  const subject = { workspaceId: 'w-1', type, title: 'Ship', isPublic: false };
  await send('c-1', createChat({ ...subject, createdBy: 'ada', participants: ['bob'] }));
  await rig.settle();
  return rig;
}

let messages = 0;

export function says(authorId: string, content: string): NewCommand {
  messages += 1;
  return postMessage({ messageId: `m-${messages}`, authorId, content });
}
