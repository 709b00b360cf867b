/** The number of random cases of a property test: a fifth in `npm test`, all of them in `npm run soak`. */
export function propertyRuns(runs: number): number {
  const isSoak = Number(process.env['MILLRACE_SOAK'] ?? 0) > 0;
  return isSoak ? runs : Math.ceil(runs / 5);
}
