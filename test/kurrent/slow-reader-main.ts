// A client process that reads slowly, so that tests can kill it during a read.

import { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { childInput, tellParent } from '../../src/testing/child-process.ts';

export interface SlowReaderInput {
  readonly url: string;
  readonly stream: string;
}

const { url, stream } = childInput() as SlowReaderInput;
const client = KurrentDBClient.connectionString(url);
let seen = 0;
for await (const { event } of client.subscribeToStream(stream)) {
  if (event !== undefined) seen += 1;
  if (seen === 20) tellParent('in the middle');
  if (seen >= 20) await new Promise((resolve) => setTimeout(resolve, 50));
}
