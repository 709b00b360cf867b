// Millrace's HTTP layer with a schema and a check of the bearer token.

import { route, type Principal } from '../../src/platform/index.ts';
import { startHttpServer } from '../../src/server/http/index.ts';
import { listening } from '../server/serve-http.ts';
import { bodySchema, token } from './echo.ts';

const principal: Principal = { kind: 'token', name: 'bench', scopes: ['append'] };
const echo = route({
  method: 'POST',
  path: '/echo',
  summary: 'Returns the body',
  tag: 'bench',
  access: 'append',
  body: bodySchema,
  responses: { 200: { description: 'The body' } },
  handle: async ({ body }) => ({ body }),
});
const server = await startHttpServer({
  routes: [echo],
  port: 0,
  authenticate: async (authorization) =>
    authorization === `Bearer ${token}` ? principal : undefined,
});
listening(server.port, token);
