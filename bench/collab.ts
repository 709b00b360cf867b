// Benchmark of the collab module end to end: a tagged message is posted, and the screen of the other member shows
// the message, the board and the notification, with a hundred people connected. There is no peer: the limit is
// bare Fastify with one durable insert that sends the message to the other member. Both servers run as separate
// processes on SQLite with every commit synced.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ours, type Benchmark, type Case, type Runner } from './benchmark.ts';
import {
  clients,
  startServedCollab,
  type ServedCollab,
  type Shown,
} from './collab/served-collab.ts';
import { eachInFlight, timed } from './loops.ts';

const limit = 'fastify + insert + ws';
const scripts = {
  [ours]: new URL('./collab/millrace-main.ts', import.meta.url),
  [limit]: new URL('./collab/limit-main.ts', import.meta.url),
};
const inFlight = clients / 2;
const posted: readonly Shown[] = ['chat.message.posted'];
const handled: readonly Shown[] = ['chat.message.posted', 'notification.new', 'task.updated'];
const plain = (turn: number): string => `message ${turn}`;
/** The status alternates, because an unchanged status causes no notification. */
const tagged = (turn: number): string =>
  `Turn ${turn}\n#status ${turn % 2 === 0 ? 'Done' : 'In Progress'}`;

export const benchmark: Benchmark = {
  name: 'collab',
  peers: ['fastify'],
  url: import.meta.url,
  // The time includes a hundred thousand messages that are inserted first.
  secondsPerSubject: 10,
  cases: async ({ defer, quick }) => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-bench-'));
    defer(() => rm(folder, { recursive: true, force: true }));
    const messages = quick ? 10_000 : 100_000;
    const shared = (name: keyof typeof scripts) => {
      let served: Promise<ServedCollab> | undefined;
      defer(async () => (await served?.catch(() => undefined))?.close());
      const file = join(folder, `${process.pid}-${name === ours ? 'ours' : 'limit'}.db`);
      const input = { file, messages };
      return { name, serve: () => (served ??= startServedCollab(scripts[name], input)) };
    };
    const millrace = shared(ours);
    const servers = [millrace, shared(limit)];
    const both = (
      name: string,
      measure: Case['measure'],
      run: (served: ServedCollab, isOurs: boolean) => Runner['run'],
    ): Case => ({
      name,
      measure,
      subjects: servers.map(({ name: subject, serve }) => ({
        name: subject,
        setup: async () => ({ run: run(await serve(), subject === ours) }),
      })),
    });
    const open = (chatId: string): Runner['run'] =>
      timed(async () => {
        const { get } = await millrace.serve();
        const path = `/api/v1/chats/${chatId}`;
        return Promise.all([get(path), get(`${path}/messages?limit=50`)]);
      });
    /** Filling the chats must not count as part of the first opening. */
    const opening = async (chatId: string): Promise<Runner> => {
      await millrace.serve();
      return { run: open(chatId) };
    };
    return [
      both(`message until all is shown, ${clients} clients`, 'throughput', ({ post }, isOurs) =>
        eachInFlight(inFlight, () => post(tagged, isOurs ? handled : posted)),
      ),
      both(`message without tags until shown, ${clients} clients`, 'throughput', ({ post }) =>
        eachInFlight(inFlight, () => post(plain, posted)),
      ),
      both(`latency from POST to the other screen, ${clients} clients`, 'latency', ({ post }) =>
        timed(() => post(plain, posted)),
      ),
      both(`latency until all is shown, ${clients} clients`, 'latency', ({ post }, isOurs) =>
        timed(() => post(tagged, isOurs ? handled : posted)),
      ),
      {
        name: `open a chat of ${messages.toLocaleString('en')} messages`,
        measure: 'latency',
        goals: [{ vs: 'a chat of 100', ratioMin: 0.8 }],
        subjects: [
          { name: ours, setup: () => opening('long') },
          { name: 'a chat of 100', setup: () => opening('short') },
        ],
      },
    ];
  },
};
