// What the reference says of the headers that routes of notifications read.

import { flowHeadersShown } from '../platform/modules/flow-of.ts';

export const repeatHeadersShown = {
  'Idempotency-Key': 'A repeat is the same one, and gets its answer.',
  ...flowHeadersShown,
};

export const followHeadersShown = {
  'Last-Event-ID': 'Of the last one that came: goes before `after`.',
};
