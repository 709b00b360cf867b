// Fastify with a schema and a hook that checks the bearer token.

import { importPeer } from '../peers.ts';
import { listening } from '../server/serve-http.ts';
import { bodySchema, token } from './echo.ts';

interface Fastify {
  addHook(
    name: 'onRequest',
    hook: (request: { readonly headers: Readonly<Record<string, string>> }) => Promise<void>,
  ): void;
  post(
    path: string,
    options: object,
    handle: (request: { readonly body: unknown }) => Promise<unknown>,
  ): void;
  listen(options: { readonly host: string; readonly port: number }): Promise<string>;
}

const { default: fastify } = await importPeer<{ readonly default: () => Fastify }>('fastify');
const server = fastify();
server.addHook('onRequest', async ({ headers }) => {
  if (headers['authorization'] !== `Bearer ${token}`) throw new Error('unknown token');
});
server.post('/echo', { schema: { body: bodySchema } }, async ({ body }) => body);
const url = await server.listen({ host: '127.0.0.1', port: 0 });
listening(Number(new URL(url).port), token);
