// Runs a full garbage collection, so that no subject pays for the garbage of the previous one.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

let collect: (() => void) | undefined;

export function collectGarbage(): void {
  if (collect === undefined) {
    setFlagsFromString('--expose-gc');
    // Only a context created after the flag was set has the function.
    collect = runInNewContext('gc') as () => void;
  }
  collect();
}
