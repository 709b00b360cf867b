// The adapter and other clients on the server of Millrace.

import { after } from 'node:test';
import { serveMemory } from './client-cases.ts';
import { connectForeign, foreignCases } from './foreign-cases.ts';

const served = await serveMemory();
const context = await connectForeign(served);
after(async () => {
  await context[Symbol.asyncDispose]();
  await served[Symbol.asyncDispose]();
});
foreignCases(context);
