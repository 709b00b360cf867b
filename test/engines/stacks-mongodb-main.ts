// The stack of the event flow document as a process, which the test kills.

import { createPlatform } from '../../src/platform/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { chatModule } from './stacks-mongodb-module.ts';

export interface StackInput {
  readonly store: string;
  readonly keys: string;
  readonly effects: string;
  /** The message whose claimed effect the process does not survive. */
  readonly killAt?: string;
  readonly localUrl: string;
}

const { store, keys, effects, killAt, localUrl } = childInput() as StackInput;
const platform = await createPlatform({
  engines: { store, keys },
  modules: [chatModule(effects, killAt)],
  leaseMs: 1_000,
  isProduction: true,
  localUrl,
});
await platform.start();
tellParent('started');
