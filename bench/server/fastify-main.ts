// The limit: bare Fastify and one durable insert into SQLite, read back by its key.

import { DatabaseSync } from 'node:sqlite';
import { importPeer } from '../peers.ts';
import { file, listening } from './serve-http.ts';

interface Request {
  readonly params: { readonly id: string };
  readonly body: { readonly id: string; readonly payload: { readonly amount: number } };
}

interface Fastify {
  post(path: string, options: object, handle: (request: Request) => unknown): void;
  get(path: string, handle: (request: Request) => unknown): void;
  listen(options: { readonly host: string; readonly port: number }): Promise<string>;
}

const { default: fastify } = await importPeer<{ readonly default: () => Fastify }>('fastify');
const database = new DatabaseSync(file);
database.exec(`
  pragma journal_mode = wal;
  pragma synchronous = full;
  create table events (sequence integer primary key, id text not null, payload text not null) strict;
  create index events_by_id on events (id);
`);
const insert = database.prepare('insert into events (id, payload) values (?, ?)');
const find = database.prepare(
  'select payload from events where id = ? order by sequence desc limit 1',
);

const server = fastify();
const body = {
  type: 'object',
  required: ['id', 'payload'],
  properties: {
    id: { type: 'string' },
    payload: {
      type: 'object',
      required: ['amount'],
      properties: { amount: { type: 'number' } },
    },
  },
};
server.post('/api/v1/commands/account.deposit', { schema: { body } }, ({ body: sent }) => {
  const { lastInsertRowid } = insert.run(sent.id, JSON.stringify(sent.payload));
  return { id: sent.id, position: String(lastInsertRowid) };
});
server.get('/api/v1/documents/banking/account/:id', ({ params }) => ({
  id: params.id,
  document: JSON.parse(String(find.get(params.id)?.['payload'])),
}));
const url = await server.listen({ host: '127.0.0.1', port: 0 });
listening(Number(new URL(url).port));
