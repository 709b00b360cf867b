// The number of random cases of a property test: few in `npm test`, all in `npm run soak`.

const share = Number(process.env['MILLRACE_SOAK'] ?? 0) > 0 ? 1 : 0.2;

export function propertyRuns(runs: number): number {
  return Math.ceil(runs * share);
}
