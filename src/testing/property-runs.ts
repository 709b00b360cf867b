// How many random cases a property test tries: few in `npm test`, all of them in `npm run soak`.

const share = Number(process.env['MILLRACE_SOAK'] ?? 0) > 0 ? 1 : 0.2;

export function propertyRuns(runs: number): number {
  return Math.ceil(runs * share);
}
