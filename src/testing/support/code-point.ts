// The unit of random texts. fast-check's own unit `binary` builds a map of a million code points for each arbitrary, which takes
// a second.

import fc from 'fast-check';

const surrogates = { first: 0xd800, count: 0x800 };

/** Any code point, without halves of surrogate pairs. */
export const codePoint: fc.Arbitrary<string> = fc
  .nat(0x10ffff - surrogates.count)
  .map((at) => String.fromCodePoint(at < surrogates.first ? at : at + surrogates.count));
