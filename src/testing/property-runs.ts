// The size of tests with random cases and faults: small in `npm test`, large in `npm run soak`.

/** The minutes for each test with random faults (MILLRACE_SOAK); 0 means one round. */
export const soakMinutes = Number(process.env['MILLRACE_SOAK'] ?? 0);

/** The number of random cases of a property test: few in `npm test`, all in `npm run soak`. */
export function propertyRuns(runs: number): number {
  return Math.ceil(runs * (soakMinutes > 0 ? 1 : 0.2));
}
