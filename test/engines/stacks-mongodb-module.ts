// The chat of the event flow document, as small as the stack test needs it.

import { appendFileSync } from 'node:fs';
import { z } from 'zod';
import { defineAggregate } from '../../src/aggregates/index.ts';
import { defineCommand, defineEvent } from '../../src/contracts/index.ts';
import { defineModule, type PlatformModule } from '../../src/platform/index.ts';
import { projection, readModel, type ProjectedEvent } from '../../src/projections/index.ts';
import { subscription, Terminal } from '../../src/subscriptions/index.ts';

const message = z.object({ content: z.string() });
const posted = defineEvent('chat.message-posted.v1', message);
export const post = defineCommand('chat.post-message', message);

const chat = defineAggregate({
  bc: 'collab',
  name: 'chat',
  version: 1,
  events: [posted],
  commands: [post],
  initial: { type: 'task', messages: 0 },
  evolve: { 'chat.message-posted.v1': (state) => ({ ...state, messages: state.messages + 1 }) },
  decide: { 'chat.post-message': ({ content }) => posted({ content }) },
  snapshot: { every: 10 },
});

const chats = projection({
  name: 'sub:collab:chats:v1',
  readModel: readModel<{ readonly messages: number }>({
    bc: 'collab',
    aggregate: 'chat',
    version: 1,
  }),
  on: {
    'chat.message-posted.v1': (before, _event: ProjectedEvent) => ({
      messages: (before?.messages ?? 0) + 1,
    }),
  },
});

export const tagParser = 'sub:collab:tag-parser:v1';

/**
 * Appends one line to a file for each message: an effect outside of the database. The process ends with SIGKILL after it has
 * claimed the effect of the message `killAt`.
 */
export function chatModule(effects: string, killAt?: string): PlatformModule {
  return defineModule({
    name: 'collab',
    aggregates: [chat],
    commands: { 'chat.post-message': 'append' },
    projections: [chats],
    subscriptions: [
      subscription({
        name: tagParser,
        from: 'start',
        // A claim of a killed process is free again after this.
        timeoutMs: 2_000,
        filter: { category: 'collab.chat.v1' },
        async handler({ eventId, payload }, { claim }) {
          const { content } = payload as { readonly content: string };
          if (content === 'broken') throw new Terminal('invalid syntax');
          if (!(await claim())) return;
          if (content === killAt) process.kill(process.pid, 'SIGKILL');
          appendFileSync(effects, `${eventId}\n`);
        },
      }),
    ],
  });
}
