// Whether the action of an event type is in the past tense, by its ending or a list of irregular participles.

const irregular = new Set(
  `agreed begun bought bound broadcast broken brought built caught chosen cut done drawn driven fallen found
  freed frozen given gone guaranteed had held hidden kept known left lent lost made met overridden overwritten
  paid put read rebuilt repaid rerun resent reset rewritten run seen sent set shown shut sold spent split stolen
  taken thrown undone unset upheld withdrawn withheld won written`.split(/\s+/),
);

/** Present forms that end in -ed. */
const presentEd = new Set(['embed', 'shred', 'wed']);

/** The verb is the last word (`tags-parsed`) or the first (`failed-permanently`). */
export function isPastTense(action: string): boolean {
  const words = action.split('-');
  return [words.at(-1), words[0]].some((word) => word !== undefined && isParticiple(word));
}

/** Words in -eed are mostly present tense: succeed, exceed, need. */
function isParticiple(word: string): boolean {
  if (irregular.has(word)) return true;
  return word.endsWith('ed') && !word.endsWith('eed') && !presentEd.has(word);
}
