// The native parser recurses without a bound: a file that nests some ten thousand levels deep would
// end the process, and no `catch` could stop it. Such files are told apart before they are parsed.

const nestingLimits = {
  bracketsMax: 1_000,
  /** Operators in one go, without a separator between them: `a => a => …`, `'a' + 'b' + …`. */
  operatorsMax: 16_000,
} as const;

/** A rough look at the characters, strings and comments included; it errs on the safe side. */
export function isNestedTooDeep(source: string): boolean {
  let brackets = 0;
  let operators = 0;
  for (let index = 0; index < source.length; index += 1) {
    const weight = kinds[source.charCodeAt(index)];
    if (weight === undefined || weight === plain) continue;
    if (weight === opens) brackets += 1;
    else if (weight === closes) brackets = Math.max(0, brackets - 1);
    else if (weight === separates) operators = 0;
    if (weight !== separates) operators += 1;
    if (brackets > nestingLimits.bracketsMax || operators > nestingLimits.operatorsMax) return true;
  }
  return false;
}

const [plain, opens, closes, separates, operates] = [0, 1, 2, 3, 4];

/** By character code, for ASCII; everything else is plain. */
const kinds = tableOf({
  '([{': opens,
  ')]}': closes,
  ';,': separates,
  // Not `.`, `-` and `/`: drawings and encoded data hold thousands of them in one string.
  '+*%=>!?:&|^~': operates,
});

function tableOf(groups: Readonly<Record<string, number>>): Uint8Array {
  const table = new Uint8Array(128);
  for (const [characters, kind] of Object.entries(groups)) {
    for (const character of characters) table[character.charCodeAt(0)] = kind;
  }
  return table;
}
