import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentObserver, type Observer } from './observer.ts';

test('without a listener the arguments are not evaluated', () => {
  let evaluated = 0;
  const attributes = (): { readonly handler: string } => {
    evaluated += 1;
    return { handler: 'x' };
  };
  const silent: Observer = silentObserver;
  silent.count?.('events_processed_total', attributes());
  silent.span?.('handle', attributes()).end();
  silent.log?.warn(attributes(), 'handler failed');
  assert.equal(evaluated, 0);

  const counted: string[] = [];
  const listening: Observer = { count: (name) => counted.push(name) };
  listening.count?.('events_processed_total', attributes());
  assert.deepEqual([evaluated, counted], [1, ['events_processed_total']]);
});
