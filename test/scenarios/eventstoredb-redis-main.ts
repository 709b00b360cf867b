// The stack of the naming document as a process, which ends with SIGKILL during the handler of one event.

import { appendFileSync } from 'node:fs';
import { createPlatform } from '../../src/platform/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { bankingOf } from './eventstoredb-redis-module.ts';

export interface StackInput {
  readonly store: string;
  readonly keys: string;
  readonly localUrl: string;
  readonly aggregate: string;
  /** A file with one line for each handled event. */
  readonly effects: string;
  /** The name of the currency during whose effect the process ends. */
  readonly killAt: string;
}

const { store, keys, localUrl, aggregate, effects, killAt } = childInput() as StackInput;
const { module } = bankingOf(aggregate, ({ payload }) => {
  const { name } = payload as { readonly name: string };
  appendFileSync(effects, `${name}\n`);
  if (name === killAt) process.kill(process.pid, 'SIGKILL');
});
const platform = await createPlatform({
  engines: { store, keys },
  modules: [module],
  leaseMs: 1_000,
  isProduction: true,
  localUrl,
});
await platform.start();
tellParent('started');
