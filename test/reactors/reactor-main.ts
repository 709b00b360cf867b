// A reactor process that pauses at one order: before its command is sent, or after the effect and before
// the reactor learns of it.

import { startReactor } from '../../src/reactors/index.ts';
import { childInput, tellParent } from '../../src/testing/child-process.ts';
import { openEngine, type EngineName } from '../store/rig.ts';
import { greetings, sendOver, tuning } from './greetings.ts';

export interface ReactorInput {
  readonly engine: EngineName;
  readonly url: string;
  readonly order: string;
  readonly at: 'before' | 'after';
}

const { engine, url, order, at } = childInput() as ReactorInput;
const db = await openEngine(engine, url, { connectionsMax: 4 });
const send = sendOver(db);
const pause = (): Promise<never> => {
  tellParent('paused');
  return new Promise(() => undefined);
};

await startReactor(db, greetings, {
  ...tuning,
  async send(request) {
    if (request.id === order && at === 'before') await pause();
    const result = await send(request);
    if (request.id === order) await pause();
    return result;
  },
});
