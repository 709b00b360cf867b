// A process that reacts, and stands still at one order: before its command is sent, or when that has taken
// effect and the reactor has not heard of it yet.

import { startReactor } from '../../src/reactors/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import type { EngineName } from '../store/rig.ts';
import { greetings, openGreetings, sendOver, tuning } from './greetings.ts';

export interface ReactorInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly order: string;
  readonly at: 'before' | 'behind';
}

const { engine, url, order, at } = childInput() as ReactorInput;
const store = await openGreetings(engine, url);
const send = sendOver(store);
const standStill = (): Promise<never> => {
  tellParent('stands');
  return new Promise(() => undefined);
};

await startReactor(store, greetings, {
  ...tuning,
  async send(request) {
    if (request.id === order && at === 'before') await standStill();
    const result = await send(request);
    if (request.id === order) await standStill();
    return result;
  },
});
